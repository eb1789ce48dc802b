// recorded-messages.ts: messages with their topics, as lines of JSON:
//
//   {"topic":"a/b","payload":{"lat":1}}                       as `mosquitto_sub -F %J` writes them
//   {"tst":"2026-01-28T15:00:08.2+0100","topic":"a/b","qos":1,"payload":"{\"lat\":1}"}   the same with %j
//   {"kind":"message","at":..,"topic":"a/b","client":"c","message":"{...}"}             tap --json
//   {"kind":"message","envelope":{"topic":"a/b","bytes":"eyJ..",...},...}               dead-letters export
//
// A text of `payload` is the message itself; any other value is written as JSON, with its numbers as they
// were. Any form may have properties of MQTT 5 (recorded-properties.ts). Lines without a message (payloads of
// dead letters, the counts of a tap) are skipped and counted.

import { GatewayError } from '../../std/gateway-error.ts'
import type { Message, QoS, Sender } from '../../domain/message.ts'
import { isLine, recordedProperties } from './recorded-properties.ts'

export type RecordedLine =
  | { kind: 'message'; message: Message }
  /** `why` a line is no message that can be mapped. */
  | { kind: 'skipped'; why: string }

/** For what a line does not say. Without a topic each line must have one. */
export type LineDefaults = { topic: string | undefined; sender: Sender; retain: boolean; nowMs: number }

type Line = Readonly<Record<string, unknown>>

/** Rejects with INPUT_UNREADABLE; `number` is that of the line. */
export function recordedMessage(text: string, number: number, defaults: LineDefaults): RecordedLine {
  const line = lineIn(text)
  if (line === null) throw unreadable(number, 'It is not a JSON object')
  if ('kind' in line && line['kind'] !== 'message') return { kind: 'skipped', why: skippedBecause(line) }
  const cut = line['cutBytes']
  if (typeof cut === 'number' && cut > 0)
    return { kind: 'skipped', why: `the tap left out ${cut} bytes of a message` }
  const { envelope } = line
  const recorded = isLine(envelope) ? envelope : line
  const topic = textOr(recorded['topic'], defaults.topic)
  if (topic === undefined) throw unreadable(number, 'It has no topic')
  const bytes = bytesIn(recorded, text)
  if (bytes === null) throw unreadable(number, 'It has no payload, message, hex or base64')
  const qos = recorded['qos']
  return {
    kind: 'message',
    message: {
      topic,
      bytes,
      qos: qos === 0 || qos === 2 ? (qos satisfies QoS) : 1,
      retain: isSet(recorded['retain']) ?? defaults.retain,
      dup: false,
      sender: senderIn(recorded, defaults.sender),
      ...recordedProperties(recorded),
      arrivedAt: timeIn(recorded) ?? defaults.nowMs,
    },
  }
}

function skippedBecause({ kind, count }: Line): string {
  if (kind === 'payload') return 'a payload that the service refused was mapped already'
  if (kind === 'dropped') return `the tap did not show ${String(count)} messages`
  return ''
}

function bytesIn(recorded: Line, text: string): Buffer | null {
  const { payload, message, hex, base64, bytes } = recorded
  if (typeof message === 'string') return Buffer.from(message)
  if (typeof hex === 'string') return Buffer.from(hex.replace(/\s+/g, ''), 'hex')
  for (const packed of [base64, bytes]) if (typeof packed === 'string') return Buffer.from(packed, 'base64')
  if (typeof payload === 'string') return Buffer.from(payload)
  if (payload === undefined) return null
  return Buffer.from(JSON.stringify(withExactNumbers(text)['payload']) ?? 'null')
}

/** In the language since 2025; the type definitions do not have it yet. */
function hasRawJson(json: object): json is { rawJSON(source: string): unknown } {
  return 'rawJSON' in json && typeof json.rawJSON === 'function'
}

/** Numbers are written as they were read: 12.50 stays 12.50, and long numbers keep their digits. */
function withExactNumbers(text: string): Line {
  const exact = (_key: string, value: unknown, context?: { source: string }) =>
    typeof value === 'number' && context && hasRawJson(JSON) ? JSON.rawJSON(context.source) : value
  return JSON.parse(text, exact) as Line
}

function senderIn(recorded: Line, otherwise: Sender): Sender {
  const nameOf = (keys: readonly string[], own: string | null) => {
    const key = keys.find((one) => recorded[one] !== undefined)
    const name = key === undefined ? own : recorded[key]
    return typeof name === 'string' ? name : null
  }
  return {
    clientId: nameOf(['client', 'clientId'], otherwise.clientId) ?? otherwise.clientId,
    userName: nameOf(['user', 'userName'], otherwise.userName),
    certificateName: nameOf(['certificate', 'certificateName'], otherwise.certificateName),
    identity: nameOf(['identity'], otherwise.identity),
  }
}

function timeIn({ arrivedAt, at, tst }: Line): number | null {
  const found = [arrivedAt, at].find((time) => typeof time === 'number' && Number.isFinite(time))
  if (typeof found === 'number') return found
  // A tap and mosquitto_sub write ISO 8601.
  const text = [arrivedAt, at, tst].find((time) => typeof time === 'string')
  const time = text === undefined ? Number.NaN : Date.parse(text)
  return Number.isNaN(time) ? null : time
}

function isSet(flag: unknown): boolean | undefined {
  return flag === undefined ? undefined : flag === true || flag === 1
}

function lineIn(text: string): Line | null {
  try {
    const value: unknown = JSON.parse(text)
    return isLine(value) ? value : null
  } catch (error) {
    if (error instanceof SyntaxError) return null
    throw error
  }
}

function textOr(value: unknown, otherwise: string | undefined): string | undefined {
  return typeof value === 'string' ? value : otherwise
}

function unreadable(number: number, why: string): GatewayError {
  return new GatewayError('INPUT_UNREADABLE', {
    what: `Cannot read line ${number} of the messages.`,
    why: `${why}.`,
    act:
      'Write each line as {"topic":"...","payload":...}, or give output of `mosquitto_sub -F %j`, ' +
      '`tap --json` or `dead-letters export`.',
  })
}
