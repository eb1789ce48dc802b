import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { configText, positionMap } from '../support/config-text.ts'
import { eventually } from '../support/eventually.ts'
import { newFolder } from '../support/folders.ts'
import { startPipeline } from '../support/pipeline-world.ts'
import { openScriptedBroker } from '../support/scripted-broker.ts'

const bridged = (bridges: string, from = '') =>
  configText({
    ingest: `{ broker: { listeners: [] }, bridges: [${bridges}] }`,
    sources: `[{ name: trucks, topic: 't/{device}', ${from} map: ${positionMap} }]`,
    delivery: 'batch: { linger: 5ms }',
  })

test('a corrected password of a bridge is used for its next connection; another address needs a restart', async () => {
  await using broker = await openScriptedBroker({
    connack: ({ password }) => ({ reasonCode: password?.toString() === 'right' ? 0 : 134 }),
  })
  const folder = await newFolder()
  const config = (baseUrl: string, topic = 't/+') =>
    bridged(
      `{ name: depot, url: "mqtt://127.0.0.1:${broker.port}", topics: ["${topic}"], client_id: gw, username: gw, password: "\${file:./password}" }`,
    )(baseUrl)
  await writeFile(join(folder, 'password'), 'wrong')
  const pipeline = await startPipeline({ folder, config })
  await pipeline.until(() => pipeline.codes().includes('MESSAGE_SOURCE_DISCONNECTED'))
  expect(JSON.stringify([pipeline.events, pipeline.status()])).not.toContain('wrong')

  await writeFile(join(folder, 'password'), 'right')
  await pipeline.until(() => pipeline.status().messageSources[0]?.connectedAt !== null)
  await eventually(() => !pipeline.codes().includes('MESSAGE_SOURCE_DISCONNECTED'))
  expect(pipeline.condition('RESTART_NEEDED')).toBeUndefined()

  await writeFile(join(folder, 'gateway.yaml'), config(pipeline.baseUrl, 'other/+'))
  await pipeline.until(() => pipeline.condition('RESTART_NEEDED') !== undefined)
  expect(pipeline.condition('RESTART_NEEDED')?.causes).toEqual(['ingest.bridges'])
})

test('a bridge that is renamed or removed with its source is applied by a restart; until then its messages are mapped as before', async () => {
  await using broker = await openScriptedBroker()
  const folder = await newFolder()
  const depot = `{ name: depot, url: "mqtt://127.0.0.1:${broker.port}", topics: ["t/+"], client_id: gw }`
  const config = (bridges: string, from: string) => bridged(bridges, from)
  const pipeline = await startPipeline({ folder, config: config(depot, 'from: [depot],') })
  const write = (bridges: string, from: string) =>
    writeFile(join(folder, 'gateway.yaml'), config(bridges, from)(pipeline.baseUrl))
  const reload = async (bridges: string, from: string) => {
    await write(bridges, from)
    return pipeline.gateway.reload('test')
  }
  const stale = () => pipeline.condition('MAPPING_STALE')
  const link = await broker.connection(0)
  let sent = 0
  const mapped = async () => {
    sent += 1
    const payload = JSON.stringify({ ts: Date.now(), lat: 51 + sent / 1000, lon: 9 })
    link.send({ cmd: 'publish', topic: 't/7', payload, qos: 1, messageId: sent, dup: false, retain: false })
    await pipeline.until(() => pipeline.sandbox.stats().distinctPayloadIds === sent)
  }
  await mapped()

  await write(depot.replace('depot', 'yard'), 'from: [yard],')
  await pipeline.until(() => stale() !== undefined)
  expect(stale()).toMatchObject({ why: expect.stringContaining('"depot: t/+"') as string })
  expect(stale()?.act).toContain('Restart')
  await mapped()
  expect(await reload('', 'from: [broker],')).toMatchObject({ kind: 'refused' })
  await mapped()

  // A source that takes the messages of all fits both bridges.
  await write(depot.replace('depot', 'yard'), '')
  await pipeline.until(() => stale() === undefined)
  expect(pipeline.condition('RESTART_NEEDED')?.causes).toEqual(['ingest.bridges'])
  await mapped()
  expect(pipeline.status().spool.deadLetters).toBe(0)
})

test('a changed token of NATS needs no restart', async () => {
  const folder = await newFolder()
  const config = bridged(
    '{ name: fleet, url: "nats://127.0.0.1:1", token: "${file:./token}", topics: ["t/{device}"], durables: { prefix: fleet } }',
  )
  await writeFile(join(folder, 'token'), 'spring')
  const pipeline = await startPipeline({ folder, config })
  await writeFile(join(folder, 'token'), 'summer')
  expect(await pipeline.gateway.reload('test')).toMatchObject({ kind: 'reloaded', restartNeeded: [] })
  expect(pipeline.condition('ACCESS_STALE')).toBeUndefined()
  await writeFile(
    join(folder, 'gateway.yaml'),
    config(pipeline.baseUrl).replace('prefix: fleet', 'prefix: yard'),
  )
  expect(await pipeline.gateway.reload('test')).toMatchObject({
    kind: 'reloaded',
    restartNeeded: ['ingest.bridges'],
  })
})
