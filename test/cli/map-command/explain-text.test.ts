import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { runCli } from '../../support/cli-world.ts'
import { newFolder } from '../../support/folders.ts'

const config = `
ingest: { broker: { access: { anonymous: true } } }
sources:
  - name: trucks
    topic: telemetry/v1/{device}
    when: lat != null
    map:
      time: { path: ts, format: ms }
      latitude: { path: lat }
      longitude: { path: lon }
      speed: { path: v, unit: m/s }
  - name: trackers
    topic: trackers/{device}
    families: { truck: [FMB6*] }
    when: sat > 3 && (fix == 1 || fix == 2) && kind != "x"
    map:
      latitude: { path: lat }
      longitude: { path: lon }
      speed: { path: speed }
  - name: crates
    topic: shared/{device}
    when: kind == "crate" && lat != null
    map: { latitude: { path: lat }, longitude: { path: lon } }
  - name: doors
    topic: shared/{device}
    when: kind == "door"
    each: doors
    map: { latitude: { path: lat }, longitude: { path: lon } }
  - name: others
    topic: shared/{device}
    map: { latitude: { path: lat }, longitude: { path: lon } }
  - name: vans
    topic: vans/{device}/{name#}
    coalesce: { name: { path: name }, require: [lat, lon] }
    map: { latitude: { path: lat }, longitude: { path: lon } }
  - name: odd
    topic: odd/{device}
    unused: [rssi]
    map: { latitude: { expr: pos.a }, longitude: { expr: 'has(pos.b) ? pos.b : rssi' } }
delivery: { base_url: http://127.0.0.1:1 }
`

async function explain(topic: string, stdin: string, more: readonly string[] = []) {
  const path = join(await newFolder(), 'gateway.yaml')
  await writeFile(path, config)
  return runCli(['map', '--config', path, '--topic', topic, '--explain', ...more], { stdin })
}

const good = '{"ts":1750000000000,"lat":48.1,"lon":2.2,"v":-1}'

describe('map --explain', () => {
  test('says which sources of the topic did not take the message, and why', async () => {
    const { stdout } = await explain('shared/a', '{"lat":48.1,"lon":2.2,"kind":"door"}')
    expect(stdout.split('\n').slice(0, 4)).toEqual([
      'shared/a: source others: 1 payload',
      '  not taken by crates: when: false, 1 of its 2 parts do not hold:',
      '    kind == "crate" (kind is "door")',
      '  not taken by doors: What `each` selects is nothing, not an object with fields.',
    ])
    const { stdout: listed } = await explain('shared/a', '{"lat":48.1,"lon":2.2,"doors":[{},{}]}')
    expect(listed.split('\n').slice(3, 4)).toEqual([
      '  not taken by doors, which holds for none of 2 records; in the first one: when kind == "door": false',
    ])
  })

  test('prints where each value comes from, and why one is missing', async () => {
    const { status, stdout } = await explain('telemetry/v1/truck-7', good)
    expect(status).toBe(0)
    expect(stdout.split('\n').map((line) => line.replace(/ {2,}/g, '  '))).toEqual([
      'telemetry/v1/truck-7: source trucks: 1 payload',
      '  device truck-7: {device} of the topic; not in the device table',
      '  when lat != null: true',
      '  field  path  raw  unit  sent as  note',
      '  signalTimestamp  ts  1750000000000  ms  2025-06-15T15:06:40.000Z',
      '  latitude  lat  48.1  deg  48.1 deg',
      '  longitude  lon  2.2  deg  2.2 deg',
      '  speed  v  -1  m/s  -  negative',
      '',
      '',
    ])
  })

  test('prints the condition that a message does not meet, and what would be sent', async () => {
    const { status, stdout } = await explain('telemetry/v1/truck-7', '{"ts":1750000000000,"lat":null,"v":2}')
    expect(status).toBe(0)
    expect(stdout).toMatch(/source trucks: ignored: when: lat != null\n/)
    expect(stdout).toMatch(/when lat != null: false\n/)
    expect(stdout).toMatch(/speed +v +2 +m\/s +7\.2 KILOMETERS_PER_HOUR/)
  })

  test('prints the parts of a long condition that fail, unread keys and the model', async () => {
    const { stdout } = await explain('trackers/t1', '{"lat":1,"lon":2,"spd":3,"sat":1,"fix":2,"x y":0}')
    expect(stdout.split('\n').slice(1, 5)).toEqual([
      '  device t1: {device} of the topic; not in the device table',
      '  model unknown: in no family',
      '  when: false, 1 of its 3 parts do not hold:',
      '    sat > 3 (sat is 1)',
    ])
    expect(stdout).toMatch(/^ {2}not read: spd, "x y"; near: speed$/m)
  })

  test('prints what an expression and the collection of values do not read', async () => {
    const odd = await explain('odd/1', '{"pos":{"a":1,"b":2,"v":3,"alt":4},"Odo":1}')
    expect(odd.stdout).toMatch(/^ {2}not read: Odo, pos\.v, pos\.alt; near: odometer$/m)
    const part = await explain('vans/v1/x', '{"name":"lat","value":1,"unit":"deg"}')
    expect(part.stdout).toMatch(/^ {2}not read: unit$/m)
  })

  test('prints that only a part of a message was looked at', async () => {
    const wide = Object.fromEntries(Array.from({ length: 5001 }, (_, index) => [`k${index}`, 1]))
    const { stdout } = await explain('telemetry/v1/t', JSON.stringify(wide))
    expect(stdout).toMatch(/not read: k0, .* and 4992 more \(only its first 5000 values were looked at\)$/m)
  })

  test('names the keys that nothing reads in the reason of a dead letter', async () => {
    const { stdout } = await explain('telemetry/v1/t', '{"ts":1750000000000,"lat":1,"Longitud":2,"spd":3}')
    expect(stdout).toContain(
      'dead letter, HALF_POSITION: There is a latitude but no longitude. The message has `Longitud`, `spd`, ' +
        'which nothing reads; near: longitude, speed.\n',
    )
  })

  test('prints the reason of a dead letter and ends with status 1', async () => {
    const nowhere = await explain('other/topic', good)
    expect(nowhere).toMatchObject({
      status: 1,
      stdout: expect.stringContaining('source none: dead letter, NO_SOURCE'),
    })
    const { stdout, status } = await explain('telemetry/v1/t', '{"ts":1750000000000,"lat":95,"lon":2}')
    expect(status).toBe(1)
    expect(stdout).toMatch(/latitude .*OUT_OF_RANGE: The position 95, 2 is out of range\./)
  })

  test('prints each collected value, and then the payload made from them', async () => {
    const lines = '{"name":"lat","value":1.5}\n{"name":"x","value":1}\n{"name":"lon","value":2.5}\n'
    const { stdout } = await explain('vans/v1/', lines, ['--lines'])
    expect(stdout).toContain('value lat: 1.5\n')
    expect(stdout).toContain('value x: not collected\n')
    expect(stdout).toMatch(/collected messages: 1 payload\n {2}device v1: the collected values/)
  })

  test('prints the explanation as JSON beside the payloads', async () => {
    const { stdout } = await explain('telemetry/v1/truck-7', `${good}\nno json\n`, ['--lines', '--json'])
    const [first, second] = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as unknown)
    expect(first).toMatchObject({
      source: 'trucks',
      payloads: [{ gps: { latitude: 48.1 } }],
      explained: {
        captures: { device: 'truck-7' },
        records: [
          { fields: expect.arrayContaining([expect.objectContaining({ option: 'speed', raw: -1 })]) },
        ],
      },
    })
    expect(second).toMatchObject({ unmappable: { reason: 'NOT_JSON' }, explained: { records: [] } })
  })
})
