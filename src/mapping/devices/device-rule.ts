// device-rule.ts: finds the device of a message: `{device}` of the topic by default, else a template over
// captures, the sender and properties of MQTT 5, or a path in the message.
//
// A name is never completed: a template with an empty part names no device, or two vehicles could become one.

import { noSender, type Message, type Sender } from '../../domain/message.ts'
import { quote } from '../../std/quote.ts'
import { Malformed } from '../path/text-cursor.ts'
import type { Read } from '../path/path.ts'
import { messageNames, senderNames } from '../path/topic-pattern.ts'
import { nameFrom, nameIn } from '../path/value.ts'
import type { Place, RecordContext } from '../types.ts'

/** What templates read of a message beside its topic. */
type Named = Pick<Message, 'sender' | 'userProperties' | 'properties'>

/**
 * By where the name comes from: holds for all messages of a topic, of a sender on it, one message, or one
 * record.
 */
export type DeviceRule =
  | { kind: 'topic'; name: (captures: readonly string[]) => string }
  | { kind: 'sender' | 'message'; name: (captures: readonly string[], message: Named) => string }
  | { kind: 'record'; name: (place: Place & Named) => string | null }

type Part = (captures: readonly string[], message: Named) => string

const senderParts: Record<(typeof senderNames)[number], (sender: Sender) => string> = {
  clientid: ({ clientId }) => clientId,
  username: ({ userName }) => userName ?? '',
  certificate: ({ certificateName }) => certificateName ?? '',
  identity: ({ identity }) => identity ?? '',
}

const messageParts: Record<(typeof messageNames)[number], Part> = {
  content_type: (_captures, { properties }) => properties?.contentType ?? '',
}

/** `{user.vin}` is the user property `vin`. */
const userStart = 'user.'

/** By a path or an expression. */
export function compileDeviceRead(read: Read): DeviceRule {
  return {
    kind: 'record',
    name: (place) => nameFrom(read(place)),
  }
}

/** Longer names would fill the caches and the log. */
export const deviceLengthMax = 256

/** The checked name of the device of the record at hand; null where the record was refused. */
export function deviceNamed(device: DeviceRule, context: RecordContext): string | null {
  const name = device.kind === 'record' ? device.name(context) : device.name(context.captures, context)
  if (name === '')
    return context.refuse(
      'NO_DEVICE',
      'The device name is missing, empty, or a word that means none, such as null.',
    )
  if (name === null)
    return context.refuse(
      'BAD_DEVICE',
      'The device name is neither a text nor a whole number with all its digits.',
    )
  if (name.length <= deviceLengthMax) return name
  return context.refuse(
    'BAD_DEVICE',
    `The device name ${quote(name, 40)} has more than ${deviceLengthMax} characters.`,
  )
}

/** The first rule that gives a name counts. */
export function firstDeviceRule(rules: readonly DeviceRule[]): DeviceRule {
  const [only] = rules
  if (only && rules.length === 1) return only
  return {
    kind: 'record',
    name(place) {
      for (const rule of rules) {
        const name = rule.kind === 'record' ? rule.name(place) : rule.name(place.captures, place)
        if (name !== '') return name
      }
      return ''
    },
  }
}

/** Compiles `{operator}/{vehicle}`; throws Malformed. */
export function compileDeviceTemplate(text: string, captureNames: readonly string[]): DeviceRule {
  const parts: Part[] = []
  let asks: 'topic' | 'sender' | 'message' = 'topic'
  let at = 0
  while (at < text.length) {
    const open = text.indexOf('{', at)
    const literal = text.slice(at, open === -1 ? undefined : open)
    if (literal.includes('}')) throw new Malformed('has a "}" without its "{"')
    if (literal !== '') parts.push(() => literal)
    if (open === -1) break
    const close = text.indexOf('}', open)
    if (close === -1) throw new Malformed('has a "{" without its "}"')
    const name = text.slice(open + 1, close)
    const index = captureNames.indexOf(name)
    const ofSender = senderNames.find((known) => known === name)
    const ofMessage = partOfMessage(name)
    if (index !== -1) parts.push((captures) => nameIn(captures[index] ?? ''))
    else if (ofSender) parts.push((_captures, { sender }) => nameIn(senderParts[ofSender](sender)))
    else if (ofMessage) parts.push((captures, message) => nameIn(ofMessage(captures, message)))
    else throw new Malformed(unknownName(name, captureNames))
    if (ofMessage) asks = 'message'
    else if (ofSender && asks === 'topic') asks = 'sender'
    at = close + 1
  }
  const join = joined(parts)
  if (asks !== 'topic') return { kind: asks, name: join }
  return { kind: 'topic', name: (captures) => join(captures, { sender: noSender }) }
}

function partOfMessage(name: string): Part | null {
  const known = messageNames.find((one) => one === name)
  if (known) return messageParts[known]
  const property = name.slice(userStart.length)
  if (!name.startsWith(userStart) || property === '') return null
  return (_captures, { userProperties }) =>
    userProperties && Object.hasOwn(userProperties, property) ? (userProperties[property] ?? '') : ''
}

function joined(parts: readonly Part[]): Part {
  return (captures, message) => {
    let name = ''
    for (const part of parts) {
      const text = part(captures, message)
      if (text === '') return ''
      name += text
    }
    return name
  }
}

function unknownName(name: string, captureNames: readonly string[]): string {
  const known = [...captureNames, ...senderNames, ...messageNames, `${userStart}NAME`]
  const list = known.map((each) => `{${each}}`).join(', ')
  return `names {${name}}, which is neither a capture of the topic nor a name of the sender or message; known are ${list}`
}
