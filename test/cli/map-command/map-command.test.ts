import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { mapCommand } from '../../../src/cli/map-command/map-command.ts'
import { newFolder } from '../../support/folders.ts'
import { keptOutput } from '../../support/ops-world.ts'

const config = `
ingest: { broker: { access: { anonymous: true } } }
sources:
  - name: trucks
    topic: telemetry/v1/{device}
    retained: ignore
    when: lat != null
    map: { time: { path: ts, format: ms }, latitude: { path: lat }, longitude: { path: lon } }
  - name: by-sender
    topic: up
    device: "{clientid}/{username}"
    map: { time: { path: ts, format: ms }, latitude: { path: lat }, longitude: { path: lon } }
  - name: vans
    topic: vans/{device}/{name}
    encoding: scalar
    coalesce: { name: "{name}", require: [lat, lon] }
    map: { latitude: { path: lat }, longitude: { path: lon } }
  - name: odd
    topic: odd/{device}
    each: { expr: '{"lat": a, "lon": b}' }
    map: { latitude: { path: lat }, longitude: { expr: lon } }
devices: { file: devices.csv }
delivery: { base_url: http://127.0.0.1:1 }
`
const good = '{"ts":1750000000000,"lat":48.1,"lon":2.2}'
const noPosition = '{"ts":1750000000000,"lat":null}'

async function runMap(argv: readonly string[], stdin: string | readonly Buffer[] = '') {
  const folder = await newFolder()
  const path = join(folder, 'gateway.yaml')
  await writeFile(path, config)
  await writeFile(join(folder, 'devices.csv'), 'device,asset_id\ntruck-7,TRK-0007\n')
  const stdout = keptOutput()
  const io = {
    stdin: Readable.from(typeof stdin === 'string' ? [Buffer.from(stdin)] : stdin),
    stdout: stdout.stream,
    stderr: keptOutput().stream,
    env: {},
    stop: new AbortController().signal,
    onHangUp: () => undefined,
    endWithReader: () => undefined,
  }
  let status: number | null = null
  const command = mapCommand(io, (end) => {
    status = end
  })
  const args = argv.map((each) => each.replace('FOLDER', folder))
  await writeFile(join(folder, 'one.json'), good)
  await writeFile(join(folder, 'two.json'), noPosition)
  await command.parseAsync(['--config', path, ...args], { from: 'user' })
  const lines = stdout.text().split('\n')
  expect(lines.pop()).toBe('')
  return { status, answers: lines.map((line) => JSON.parse(line) as Record<string, unknown>) }
}

const topic = ['--topic', 'telemetry/v1/truck-7']
const mapped = {
  source: 'trucks',
  payloads: [
    expect.objectContaining({
      signalTimestamp: 1_750_000_000_000,
      assetIdentifier: { id: 'TRK-0007' },
      gps: { latitude: 48.1, longitude: 2.2 },
    }),
  ],
}
const ignored = { source: 'trucks', payloads: [], ignored: { reason: 'when: lat != null' } }

describe('map', () => {
  test('prints the payloads of the message on stdin and ends with status 0', async () => {
    expect(await runMap(topic, good)).toEqual({ status: 0, answers: [mapped] })
  })

  test('prints why a message is ignored, which is no failure', async () => {
    expect(await runMap(topic, noPosition)).toEqual({ status: 0, answers: [ignored] })
    const retained = await runMap([...topic, '--retain'], good)
    expect(retained.answers).toEqual([{ source: 'trucks', payloads: [], ignored: { reason: 'retained' } }])
  })

  test('prints why a message cannot be mapped and ends with status 1', async () => {
    const { status, answers } = await runMap([...topic, '--lines'], `${good}\nno json\n`)
    expect(status).toBe(1)
    expect(answers).toEqual([
      mapped,
      {
        source: 'trucks',
        payloads: [],
        unmappable: { reason: 'NOT_JSON', detail: expect.stringContaining('position 1'), device: 'truck-7' },
      },
    ])
  })

  test('reads each file as one message, byte for byte', async () => {
    const { status, answers } = await runMap([...topic, 'FOLDER/one.json', 'FOLDER/two.json'])
    expect({ status, answers }).toEqual({ status: 0, answers: [mapped, ignored] })
  })

  test('reads each line as one message with --lines, however the stream is cut', async () => {
    const bytes = Buffer.from(`${good}\n${noPosition}\r\n${good}`)
    const chunks = [bytes.subarray(0, 10), bytes.subarray(10, 45), bytes.subarray(45, 46), bytes.subarray(46)]
    const { answers } = await runMap([...topic, '--lines'], chunks)
    expect(answers).toEqual([mapped, ignored, mapped])
  })

  test('takes the sender from its options', async () => {
    const { answers } = await runMap(['--topic', 'up', '--client', 'c1', '--user', 'u1'], good)
    expect(answers).toEqual([
      { source: 'by-sender', payloads: [expect.objectContaining({ deviceIdentifier: { id: 'c1/u1' } })] },
    ])
  })

  test('prints that a message waits, and later the payload of the waiting messages', async () => {
    const { status, answers } = await runMap(['--topic', 'vans/v1/lat', '--lines'], '48.1\n48.2\n')
    const part = { source: 'vans', payloads: [], part: {} }
    const incomplete = { source: 'vans', payloads: [], ignored: { reason: 'incomplete' } }
    expect({ status, answers }).toEqual({ status: 0, answers: [part, part, incomplete, incomplete] })
  })

  test('evaluates the expression of a source', async () => {
    const { status, answers } = await runMap(
      ['--topic', 'odd/1', '--lines'],
      '{"a":1,"b":2}\n{"a":91}\n{"b"\n',
    )
    expect({ status, answers }).toEqual({
      status: 1,
      answers: [
        {
          source: 'odd',
          payloads: [expect.objectContaining({ gps: { latitude: 1, longitude: 2 } })],
        },
        {
          source: 'odd',
          payloads: [],
          unmappable: expect.objectContaining({ reason: 'HALF_POSITION' }),
        },
        { source: 'odd', payloads: [], unmappable: expect.objectContaining({ reason: 'NOT_JSON' }) },
      ],
    })
  })

  test('explains what is read from the record that an expression made', async () => {
    const { answers } = await runMap(['--topic', 'odd/1', '--explain', '--json'], '{"a":1,"b":2}')
    expect(answers).toEqual([
      expect.objectContaining({
        source: 'odd',
        explained: expect.objectContaining({
          records: [
            expect.objectContaining({
              fields: expect.arrayContaining([
                expect.objectContaining({ field: 'latitude', path: 'lat', raw: 1, value: 1 }),
              ]),
            }),
          ],
        }),
      }),
    ])
  })

  test('prints which message would be in quarantine', async () => {
    const { answers } = await runMap(topic, '{"ts":4102444800000,"lat":48.1,"lon":2.2}')
    expect(answers).toEqual([
      {
        source: 'trucks',
        payloads: [],
        quarantined: { reason: 'UNSET_CLOCK', detail: expect.any(String), device: 'truck-7' },
      },
    ])
  })

  test('names a missing option', async () => {
    await expect(runMap([])).rejects.toMatchObject({
      code: 'USAGE',
      what: 'The topic of the messages is missing.',
    })
  })

  test('reports a file that it cannot read', async () => {
    await expect(runMap([...topic, 'FOLDER/none.json'])).rejects.toMatchObject({
      code: 'INPUT_UNREADABLE',
      why: 'The file does not exist.',
    })
  })
})
