// A member of a share group that is gone: Mosquitto keeps giving it its share. No broker of MQTT lists the members; the
// check says how many sessions of the broker have no client.

import { connectAsync } from 'mqtt'
import { expect, test } from 'vitest'
import { checkBridge } from '../../../src/ingest/bridges/bridges.ts'
import { eventually } from '../../support/eventually.ts'
import { hasMosquitto, publishAll, startMosquitto } from '../../support/mosquitto.ts'
import { parseMqttBridges } from '../../support/mqtt-bridges.ts'

test.skipIf(!hasMosquitto)('the check of a share group counts the sessions without a client', async () => {
  const { port } = await startMosquitto({ lines: ['sys_interval 1'] })
  const url = `mqtt://127.0.0.1:${port}`
  const check = async (options: object) => {
    const [bridge] = parseMqttBridges([{ name: 'depot', url, topics: ['t/+'], client_id: 'gw', ...options }])
    return (await checkBridge(bridge!, new AbortController().signal)).what
  }
  const group = { share_group: 'g' }
  const member = (clientId: string) => connectAsync(url, { clientId, clean: false })
  const [gone, stays] = [await member('gone'), await member('stays')]
  for (const one of [gone, stays]) await one.subscribeAsync('$share/g/t/+', { qos: 1 })
  expect(await check(group)).not.toContain('without a client')
  // Mosquitto counts each second, and not right where a client is just connecting: so it is asked once.
  let counted = ''
  const watch = await connectAsync(url)
  watch.on('message', (_topic, bytes) => (counted = bytes.toString()))
  await watch.subscribeAsync('$SYS/broker/clients/disconnected')
  await gone.endAsync()
  await eventually(() => counted === '1')
  expect(await check(group)).toContain('It has a session without a client now')
  expect(await check({})).not.toContain('without a client')
  // What it says is true: half of the messages wait for the member that is gone.
  let taken = 0
  stays.on('message', () => (taken += 1))
  const messages = Array.from({ length: 40 }, (_, index) => ({ topic: 't/1', payload: `m${index}` }))
  await publishAll(url, messages)
  await eventually(() => taken === 20)
  await watch.endAsync()
  await stays.endAsync()
})
