import { spawnSync } from 'node:child_process'
import { describe, expect, test } from 'vitest'
import { recordedMessage } from '../../../src/cli/map-command/recorded-messages.ts'
import { runCli } from '../../support/cli-world.ts'

const main = new URL('../../../src/main.ts', import.meta.url).pathname

const location = '{"_type":"location","lat":48.8,"lon":2.2,"tst":1750000000,"vel":61,"cog":271}'

function answersIn(stdout: string): Record<string, unknown>[] {
  return stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>)
}

describe('map', () => {
  test('maps with a preset without a config, in a real process', () => {
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

  test('reads each line as one message, however the stream is cut', async () => {
    const bytes = Buffer.from(`${location}\n{"_type":"lwt"}\r\n${location}`)
    const cuts = [0, 10, location.length, location.length + 1, location.length + 16, bytes.length]
    const stdin = cuts.slice(1).map((end, index) => bytes.subarray(cuts[index], end))
    const { stdout } = await runCli(['map', '--preset', 'owntracks', '--lines'], { stdin })
    expect(answersIn(stdout)).toMatchObject([{ payloads: [{}] }, { payloads: [] }, { payloads: [{}] }])
  })

  test('explains that only a part of a message was looked at', async () => {
    const wide = Object.fromEntries(Array.from({ length: 5001 }, (_, index) => [`k${index}`, 1]))
    const { stdout } = await runCli(['map', '--preset', 'owntracks', '--explain'], {
      stdin: JSON.stringify({ ...(JSON.parse(location) as object), ...wide }),
    })
    expect(stdout).toMatch(/not read: k0, .* more \(only its first 5000 values were looked at\)$/m)
  })
})

describe('a recorded message', () => {
  const sender = { clientId: 'c', userName: null, certificateName: null, identity: null }
  const defaults = { topic: undefined, sender, retain: false, nowMs: 0 }
  const read = (line: object) => recordedMessage(JSON.stringify(line), 1, defaults)

  test('keeps the digits of numbers', () => {
    const text = '{"topic":"t","payload":{"odometer":90210.50,"serial":12345678901234567890,"list":[1e3]}}'
    const line = recordedMessage(text, 1, defaults)
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

  test('has no properties where there are none, or no valid ones', () => {
    const found = read({
      topic: 't',
      payload: 1,
      userProperties: [1],
      properties: { contentType: 7, isText: 1 },
    })
    expect(found).not.toHaveProperty('message.properties')
    expect(found).not.toHaveProperty('message.userProperties')
  })
})
