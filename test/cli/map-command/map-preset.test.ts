import { spawnSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { recordedMessage } from '../../../src/cli/map-command/recorded-messages.ts'
import { runCli } from '../../support/cli-world.ts'
import { newFolder } from '../../support/folders.ts'

const main = new URL('../../../src/main.ts', import.meta.url).pathname

const location = '{"_type":"location","lat":48.8,"lon":2.2,"tst":1750000000,"vel":61,"cog":271}'

function answersIn(stdout: string): Record<string, unknown>[] {
  return stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>)
}

describe('map --preset', () => {
  test('maps without a config, in a real process', () => {
    const run = spawnSync(process.execPath, [main, 'map', '--preset', 'owntracks'], {
      input: location,
      encoding: 'utf8',
    })
    expect([run.status, run.stderr]).toEqual([0, expect.stringContaining('the topic owntracks/user/device ')])
    expect(answersIn(run.stdout)).toEqual([
      {
        source: 'preset',
        payloads: [expect.objectContaining({ gps: expect.objectContaining({ latitude: 48.8, speed: 61 }) })],
      },
    ])
  })

  test('explains a message on a topic of its own', async () => {
    const args = ['map', '--preset', 'owntracks', '--topic', 'owntracks/jane/phone', '--explain']
    const { stdout } = await runCli(args, { stdin: location })
    expect(stdout).toContain('owntracks/jane/phone: source preset: 1 payload\n  device jane/phone: ')
  })

  test('knows the model of the devices', async () => {
    const stdin = '{"state":{"reported":{"ts":1769611120000,"latlng":"47.1,1.4","sat":17,"216":386814875}}}'
    const run = (more: readonly string[]) => runCli(['map', '--preset', 'teltonika-json', ...more], { stdin })
    expect((await run([])).stdout).not.toContain('OBD_LIFETIME_ODOMETER')
    expect((await run(['--model', 'FMC650'])).stdout).toContain('"value":"386814.875"')
  })

  test('says which topics the preset reads, and takes another pattern', async () => {
    const args = ['map', '--preset', 'teltonika-json', '--topic', 'fleet/864']
    const stdin = '{"state":{"reported":{"ts":1769611120000,"latlng":"47.1,1.4","sat":17}}}'
    const foreign = await runCli(args, { stdin })
    expect(foreign.status).toBe(1)
    expect(foreign.stderr).toMatch(/^The preset reads teltonika\/\{device\}\/data, .*--source-topic/)
    const own = await runCli([...args, '--source-topic', 'fleet/{device}'], { stdin })
    expect([own.status, own.stderr]).toEqual([0, ''])
    expect(own.stdout).toContain('"deviceIdentifier":{"id":"864"}')
    const byDevice = ['map', '--preset', 'owntracks', '--topic', 'x/7', '--source-topic', 'x/{device}']
    expect((await runCli(byDevice, { stdin: location })).stdout).toContain('"deviceIdentifier":{"id":"7"}')
  })

  test('reports an unknown preset with the one that is meant', async () => {
    const { status, stderr } = await runCli(['map', '--preset', 'owntrack'], { stdin: location })
    expect(status).toBe(2)
    expect(stderr).toContain('Did you mean "owntracks"?')
  })

  test.each([
    [[], 'Neither --config nor --preset is given.'],
    [['--preset', 'vss', '--config', 'x.yaml'], '--config and --preset are given together.'],
    [['--preset', 'vss', '--lines', '--ndjson'], '--lines and --ndjson are given together.'],
    [
      ['--preset', 'vss', '--from-tap', 'a.json'],
      'Files and --from-tap or --from-dead-letters are given together.',
    ],
    [['--preset', 'vss', '--reason', 'NO_TIME'], '--reason is given without --from-dead-letters.'],
    [['--config', 'x.yaml', '--model', 'FMB640'], '--model is given without --preset.'],
  ])('refuses %j', async (args, what) => {
    const { status, stderr } = await runCli(['map', ...args])
    expect(status).toBe(2)
    expect(stderr).toContain(what)
  })
})

describe('map --ndjson', () => {
  const lines = [
    // mosquitto_sub -F %j
    { tst: '2026-01-28T15:00:08.250+0100', topic: 'owntracks/a/1', qos: 1, retain: 0, payload: location },
    // mosquitto_sub -F %J
    { topic: 'owntracks/b/2', payload: JSON.parse(location) as unknown },
    // tap --json
    {
      kind: 'message',
      at: 1760000000000,
      topic: 'owntracks/c/3',
      client: 'c',
      message: location,
      cutBytes: 0,
    },
    { kind: 'alive' },
    // dead-letters export
    {
      kind: 'message',
      deadLetter: null,
      envelope: {
        topic: 'owntracks/d/4',
        bytes: Buffer.from(location).toString('base64'),
        arrivedAt: 1760000000000,
      },
    },
    { kind: 'payload', payload: {} },
    { topic: 'owntracks/e/5', hex: Buffer.from(location).toString('hex') },
  ]

  test('reads topics and messages of several forms in one run', async () => {
    const file = join(await newFolder(), 'lines.ndjson')
    await writeFile(file, `${lines.map((line) => JSON.stringify(line)).join('\n')}\n\n`)
    const { status, stdout, stderr } = await runCli(['map', '--preset', 'owntracks', '--ndjson', file])
    expect([status, stderr]).toEqual([
      0,
      '1 line skipped: a payload that the service refused was mapped already.\n',
    ])
    expect(answersIn(stdout).map(({ topic, payloads }) => [topic, (payloads as unknown[]).length])).toEqual([
      ['owntracks/a/1', 1],
      ['owntracks/b/2', 1],
      ['owntracks/c/3', 1],
      ['owntracks/d/4', 1],
      ['owntracks/e/5', 1],
    ])
  })

  test('keeps the digits of numbers', () => {
    const sender = { clientId: 'c', userName: null, certificateName: null, identity: null }
    const text = '{"topic":"t","payload":{"odometer":90210.50,"serial":12345678901234567890,"list":[1e3]}}'
    const line = recordedMessage(text, 1, { topic: undefined, sender, retain: false, nowMs: 0 })
    expect(line.kind === 'message' && line.message.bytes.toString()).toBe(
      '{"odometer":90210.50,"serial":12345678901234567890,"list":[1e3]}',
    )
  })

  test.each([
    [
      'the gateway',
      {
        userProperties: { vin: 'V1', n: 7 },
        properties: { contentType: 'gps', responseTopic: 'r', correlation: 'AAE=', isText: true, expiryS: 5 },
      },
    ],
    [
      'mosquitto_sub',
      {
        properties: {
          'content-type': 'gps',
          'response-topic': 'r',
          'correlation-data': '\u0000\u0001',
          'payload-format-indicator': 1,
          'message-expiry-interval': 5,
          'user-properties': { vin: 'V1' },
        },
      },
    ],
  ])('reads the properties of MQTT 5 that %s writes', (_name, written) => {
    const sender = { clientId: 'c', userName: null, certificateName: null, identity: null }
    const defaults = { topic: undefined, sender, retain: false, nowMs: 0 }
    const read = (line: object) => recordedMessage(JSON.stringify(line), 1, defaults)
    const message = { topic: 't', payload: 1, ...written }
    const properties = {
      userProperties: { vin: 'V1' },
      properties: { contentType: 'gps', responseTopic: 'r', correlation: 'AAE=', isText: true, expiryS: 5 },
    }
    expect(read(message)).toMatchObject({ message: properties })
    expect(read({ kind: 'message', envelope: { ...message, bytes: '' } })).toMatchObject({
      message: properties,
    })
  })

  test('reads no properties where there are none, or no valid ones', () => {
    const sender = { clientId: 'c', userName: null, certificateName: null, identity: null }
    const line = '{"topic":"t","payload":1,"userProperties":[1],"properties":{"contentType":7,"isText":1}}'
    const read = recordedMessage(line, 1, { topic: undefined, sender, retain: false, nowMs: 0 })
    expect(read).not.toHaveProperty('message.properties')
    expect(read).not.toHaveProperty('message.userProperties')
  })

  test('ends after --count', async () => {
    const stdin = `{"topic":"owntracks/a/1","message":${JSON.stringify(location)}}\n`.repeat(3)
    const { stdout } = await runCli(['map', '--preset', 'owntracks', '--ndjson', '--count', '2'], { stdin })
    expect(answersIn(stdout)).toHaveLength(2)
  })

  test.each([
    ['no json', 'line 2 of the messages', 'It is not a JSON object.'],
    ['{"payload":1}', 'line 2 of the messages', 'It has no topic.'],
    ['{"topic":"a"}', 'line 2 of the messages', 'It has no payload, message, hex or base64.'],
  ])('reports the line %s', async (line, what, why) => {
    const stdin = `{"topic":"a","message":"1"}\n${line}\n`
    const { status, stderr } = await runCli(['map', '--preset', 'vss', '--ndjson'], { stdin })
    expect(status).not.toBe(0)
    expect(stderr).toContain(what)
    expect(stderr).toContain(why)
  })
})
