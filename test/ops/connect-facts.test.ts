import { describe, expect, test } from 'vitest'
import { connectFacts } from '../../src/ops/ops.ts'

type Connect = Parameters<typeof connectFacts>[0]

const usual: Connect = {
  keepaliveAsked: 60,
  keepalive: 60,
  sessionExpiryAsked: 3600,
  sessionExpiry: 3600,
  cleanStart: false,
  sessionPresent: true,
  receiveMaximum: 65_535,
  topicAliasMaximum: 0,
  maximumPacketSize: null,
  willDelay: null,
  userProperties: null,
}

const textsOf = (more: Partial<Connect>) => Object.fromEntries(connectFacts({ ...usual, ...more }))

describe('the facts of a CONNECT', () => {
  test('are what it got, and no will, bound or property that it does not name', () => {
    expect(textsOf({})).toEqual({
      keepalive: '1 min',
      session: 'resumed',
      'session expiry': '1 h',
      'receive maximum': '65535 messages',
      'topic alias maximum': '0',
    })
  })

  test('say what it asked for where it got something else', () => {
    const texts = textsOf({ keepaliveAsked: 0, sessionExpiryAsked: null })
    expect(texts).toMatchObject({ keepalive: '1 min, asked: none', 'session expiry': '1 h, asked: never' })
  })

  test('say why a device that wants a stored session loses it', () => {
    const none = { sessionExpiryAsked: 0, sessionExpiry: 0, sessionPresent: false }
    expect(textsOf(none)).toMatchObject({
      session: 'new: none was stored',
      'session expiry': 'at its end: it asks for a stored session and sets no session expiry',
    })
    expect(textsOf({ ...none, cleanStart: true })).toMatchObject({
      session: 'new, as it asked',
      'session expiry': 'at its end',
    })
  })

  test('have will delay, maximum packet and user properties, made visible', () => {
    const userProperties = { fw: '4.2\u202e' }
    expect(textsOf({ willDelay: 0, maximumPacketSize: 512, userProperties })).toMatchObject({
      'will delay': 'none',
      'maximum packet': '512 bytes',
      'user property': 'fw=4.2\\u{202e}',
    })
  })
})
