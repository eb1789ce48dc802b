import { describe, expect, test } from 'vitest'
import { alertsSchema } from '../../src/alerts/config.ts'
import { configWarnings } from '../../src/config/config.ts'
import { ingestSchema } from '../../src/ingest/config.ts'
import { opsSchema } from '../../src/ops/config.ts'
import { createAuthority } from '../support/certificates.ts'

const users = [{ name: 'a', password: 'x' }]
const tls = createAuthority().issue()

function warningsOf(url: string, access: object, listen = '127.0.0.1:8080'): string[] {
  const listeners = [/^(mqtts|wss):/.test(url) ? { url, tls } : { url }]
  const ingest = ingestSchema.parse({ broker: { listeners, access } })
  const sections = { ingest, ops: opsSchema.parse({ listen }), alerts: alertsSchema.parse({}), sources: [] }
  return configWarnings(sections).map(({ what }) => what)
}

describe('a valid config', () => {
  test.each([
    ['mqtt://127.0.0.1', { users }, []],
    ['mqtt://127.0.0.1', { anonymous: true }, []],
    ['mqtts://0.0.0.0', { users }, []],
    ['mqtt://0.0.0.0', { users }, [/passwords or tokens to the listener 0.0.0.0:1883 without encryption/]],
    ['wss://0.0.0.0', { users }, []],
    ['ws://0.0.0.0', { users }, [/passwords or tokens to the listener 0.0.0.0:8083 without encryption/]],
    ['mqtt://10.0.0.1', { password_file: 'users' }, [/without encryption/]],
    ['mqtt://10.0.0.1', { tokens: [{ name: 't', token: 'a token of 7 words' }] }, [/without encryption/]],
    [
      'mqtts://0.0.0.0',
      { anonymous: true, anonymous_beyond_loopback: true },
      [/^Everybody who reaches the listener 0.0.0.0:8883 may publish/],
    ],
  ])('with the listener %s and %j warns of what it allows', (url, access, expected) => {
    expect(warningsOf(url, access)).toEqual(expected.map((each) => expect.stringMatching(each)))
  })

  test('warns where other machines can read the ops port', () => {
    expect(warningsOf('mqtt://127.0.0.1', { users }, '0.0.0.0:8080')).toEqual([
      expect.stringMatching(/^Everybody who reaches 0.0.0.0:8080 \(ops.listen\) can read/),
    ])
  })
})
