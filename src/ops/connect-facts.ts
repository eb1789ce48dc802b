// connect-facts.ts: what a client of MQTT 5 asked for in its CONNECT and what it got, as names and texts for
// the page and for the command `devices`. Texts of user properties come from outside and are made visible.

import { formatDuration, plural } from '../std/quantity.ts'
import { visible } from '../std/quote.ts'
import type { DeviceClient } from './types.ts'

type Connect = NonNullable<DeviceClient['connect']>

export function connectFacts(connect: Connect): readonly (readonly [name: string, text: string])[] {
  const { keepalive, keepaliveAsked, maximumPacketSize, userProperties, willDelay } = connect
  const properties = Object.entries(userProperties ?? {})
  return [
    ['keepalive', gotText(keepalive, keepaliveAsked)],
    ['session', sessionText(connect)],
    ['session expiry', expiryText(connect)],
    ['receive maximum', plural(connect.receiveMaximum, 'message')],
    ['topic alias maximum', String(connect.topicAliasMaximum)],
    ...(maximumPacketSize === null ? [] : ([['maximum packet', `${maximumPacketSize} bytes`]] as const)),
    ...(willDelay === null ? [] : ([['will delay', durationText(willDelay)]] as const)),
    ...properties.map(([name, value]) => ['user property', `${visible(name)}=${visible(value)}`] as const),
  ]
}

function sessionText({ cleanStart, sessionPresent }: Connect): string {
  if (cleanStart) return 'new, as it asked'
  return sessionPresent ? 'resumed' : 'new: none was stored'
}

function expiryText({ sessionExpiry, sessionExpiryAsked, cleanStart }: Connect): string {
  if (sessionExpiryAsked !== 0) return gotText(sessionExpiry, sessionExpiryAsked)
  // By 3.1.1 the same setting keeps the session.
  return cleanStart ? 'at its end' : 'at its end: it asks for a stored session and sets no session expiry'
}

/** Seconds; null for never. */
function gotText(got: number | null, asked: number | null): string {
  return got === asked ? durationText(got) : `${durationText(got)}, asked: ${durationText(asked)}`
}

function durationText(seconds: number | null): string {
  if (seconds === null) return 'never'
  return seconds === 0 ? 'none' : formatDuration(seconds * 1000)
}
