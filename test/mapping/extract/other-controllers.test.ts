import { readFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { openMapper } from '../../../src/mapping/mapping.ts'
import { runCli } from '../../support/cli-world.ts'
import { get } from '../../support/ops-world.ts'
import { messageOf } from '../../support/mapping-world.ts'
import { startPipeline } from '../../support/pipeline-world.ts'
import { loadPresetMapping } from '../../support/preset-mapping.ts'

const deps = { env: {}, readText: (path: string) => readFile(path, 'utf8') }
const hoursOf = (address: string, data = 'D45A0000FFFFFFFF') => ({ id: `18FEE5${address}`, data })
const zero = '00000000FFFFFFFF'

async function senquip(frames: readonly object[], rest: object = {}) {
  const mapper = await openMapper(await loadPresetMapping('senquip-j1939', deps))
  const message = messageOf({ deviceid: 'S1', ts: 1_750_000_000, can1: frames, ...rest })
  mapper.map({ ...message, topic: 'senquip/S1' })
  return { omitted: Object.fromEntries(mapper.counters().omitted), ofDevice: mapper.withheldOf('S1') }
}

describe('a value of another controller than the selected one', () => {
  test('is counted for its device with the address, also when the message is ignored', async () => {
    const counted = {
      source: 'senquip-j1939',
      field: 'j1939.engineHours',
      reason: 'of source 0x27, source: 0 is selected',
      count: 1,
      isSent: false,
      lastValue: null,
    }
    for (const rest of [{}, { gps_lat: 51.3, gps_lon: 9.4 }]) {
      const { omitted, ofDevice } = await senquip([hoursOf('27'), hoursOf('27')], rest)
      expect(ofDevice).toEqual([counted])
      expect(omitted).toEqual({ 'senquip-j1939|j1939.engineHours|another controller': 1 })
    }
  })

  test('names the addresses of a list', async () => {
    const distance = { id: '18FEC131', data: '10270000FFFFFFFF' }
    const { ofDevice } = await senquip([distance])
    expect(ofDevice.map(({ field, reason }) => [field, reason])).toEqual([
      ['j1939.distanceFine', 'of source 0x31, source: [0, 238, 23] is selected'],
    ])
  })

  test.each([
    ['the selected one sends it too', [hoursOf('27'), hoursOf('00')]],
    ['every address is selected', [{ id: '18FEF327', data: '00E8764600E87646' }]],
    ['it has no value', [hoursOf('27', 'FFFFFFFFFFFFFFFF'), hoursOf('27', zero)]],
    ['nothing reads it', [{ id: '18FEEE27', data: '00E8764600E87646' }]],
  ])('is not counted where %s', async (_, frames) => {
    expect((await senquip(frames)).ofDevice).toEqual([])
  })

  test('is counted once a message, also of a message with several records', async () => {
    const own = { each: 'list', device: { path: 'name' }, when: 'has(name)' }
    const config = await loadPresetMapping('senquip-j1939', deps, own)
    const mapper = await openMapper(config)
    const list = [
      { name: 'a', ts: 1_750_000_000 },
      { name: 'b', ts: 1_750_000_000 },
    ]
    mapper.map({ ...messageOf({ list, can1: [hoursOf('27')] }), topic: 'senquip/x' })
    expect([...mapper.counters().omitted.values()].filter((count) => count > 1)).toEqual([])
    mapper.map({ ...messageOf({ list }), topic: 'senquip/x' })
    expect(mapper.counters().omitted.get('senquip-j1939|j1939.engineHours|another controller')).toBe(1)
  })

  test('is named by map --explain, also where the selected one sends it', async () => {
    const frames = [hoursOf('27'), hoursOf('00')]
    const stdin = JSON.stringify({ deviceid: 'S1', ts: 1_750_000_000, can1: frames })
    const { stdout } = await runCli(['map', '--preset', 'senquip-j1939', '--explain'], { stdin })
    expect(stdout).toContain(
      '  extract into j1939: found\n    ignored: engineHours of source 0x27, source: 0 is selected\n',
    )
  })
})

test('the device list of the daemon names the controller', async () => {
  const config = (baseUrl: string) => `
ingest: { broker: { listeners: [{ url: "mqtt://127.0.0.1:0" }], access: { anonymous: true } } }
sources: [{ name: trucks, preset: senquip-j1939 }]
spool: { path: ./spool, max_bytes: 32MiB, min_free_bytes: 1MiB }
delivery: { base_url: "${baseUrl}", batch: { linger: 20ms } }
ops: { listen: "127.0.0.1:0", stop_deadline: 5s }
`
  const pipeline = await startPipeline({ config })
  const device = await pipeline.device('S1')
  const position = { gps_lat: 51.3, gps_lon: 9.4 }
  const payload = JSON.stringify({
    deviceid: 'S1',
    ts: Math.floor(Date.now() / 1000),
    can1: [hoursOf('27')],
    ...position,
  })
  device.publish({ topic: 'senquip/S1', payload, messageId: 1 })
  await device.acked(1)
  await pipeline.until(() => pipeline.status().totals.delivered === 1)
  const { ops } = pipeline.gateway.addresses
  const { stdout } = await runCli(['devices', '--url', ops])
  expect(stdout).toContain(
    'device "S1": j1939.engineHours omitted 1 x: of source 0x27, source: 0 is selected\n',
  )
  expect((await get(ops, '/metrics')).text).toContain(
    'gateway_fields_omitted_total{source="trucks",field="j1939.engineHours",reason="another_controller"} 1\n',
  )
})
