import { expect, test } from 'vitest'
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
const usualTexts = {
  keepalive: '1 min',
  session: 'resumed',
  'session expiry': '1 h',
  'receive maximum': '65535 messages',
  'topic alias maximum': '0',
}
const none = { sessionExpiryAsked: 0, sessionExpiry: 0, sessionPresent: false }
const wantsNoSession = 'at its end: it asks for a stored session and sets no session expiry'

test.each<[string, Partial<Connect>, Record<string, string>]>([
  ['what it got, and no will, bound or property that it does not name', {}, {}],
  [
    'what it asked for where it got something else',
    { keepaliveAsked: 0, sessionExpiryAsked: null },
    { keepalive: '1 min, asked: none', 'session expiry': '1 h, asked: never' },
  ],
  [
    'why a device that wants a stored session loses it',
    none,
    { session: 'new: none was stored', 'session expiry': wantsNoSession },
  ],
  [
    'that a device wants no session',
    { ...none, cleanStart: true },
    { session: 'new, as it asked', 'session expiry': 'at its end' },
  ],
  [
    'will delay, maximum packet and user properties, made visible',
    { willDelay: 0, maximumPacketSize: 512, userProperties: { fw: '4.2\u202e' } },
    { 'will delay': 'none', 'maximum packet': '512 bytes', 'user property': 'fw=4.2\\u{202e}' },
  ],
])('the facts of a CONNECT say %s', (_, connect, texts) => {
  expect(Object.fromEntries(connectFacts({ ...usual, ...connect }))).toEqual({ ...usualTexts, ...texts })
})
