// device-rule.ts: finds the device of a message: `{device}` of the topic by default, else a template over
// captures and the sender, or a path in the message.
//
// A name is never completed: a template with an empty part names no device, or two vehicles could become one.

import { noSender, type Sender } from '../../domain/message.ts'
import { quote } from '../../std/quote.ts'
import { Malformed } from '../path/text-cursor.ts'
import { compilePaths, type Read } from '../path/path.ts'
import { senderNames } from '../path/topic-pattern.ts'
import { nameFrom } from '../path/value.ts'
import type { RecordContext, Up } from '../types.ts'

/** By where the name comes from: holds for all messages of a topic, of a sender on it, or one record. */
export type DeviceRule =
  | { kind: 'topic'; name: (captures: readonly string[]) => string }
  | { kind: 'sender'; name: (captures: readonly string[], sender: Sender) => string }
  | {
      kind: 'record'
      name: (
        record: unknown,
        root: unknown,
        up: Up,
        captures: readonly string[],
        sender: Sender,
      ) => string | null
    }

type Part = (captures: readonly string[], sender: Sender) => string

const senderParts: Record<(typeof senderNames)[number], Part> = {
  clientid: (_captures, sender) => sender.clientId,
  username: (_captures, sender) => sender.userName ?? '',
  certificate: (_captures, sender) => sender.certificateName ?? '',
  identity: (_captures, sender) => sender.identity ?? '',
}

export function compileDevicePath(path: string | readonly string[]): DeviceRule {
  const read: Read = compilePaths(path)
  return { kind: 'record', name: (record, root, up) => nameFrom(read(record, root, up)) }
}

/** Longer names would fill the caches and the log. */
export const deviceLengthMax = 256

/** The checked name of the device of the record at hand; null where the record was refused. */
export function deviceNamed(device: DeviceRule, context: RecordContext): string | null {
  const { record, root, up, captures, sender } = context
  const name =
    device.kind === 'record' ? device.name(record, root, up, captures, sender) : device.name(captures, sender)
  if (name === '') return context.refuse('NO_DEVICE', 'The device name is missing or empty.')
  if (name === null)
    return context.refuse('BAD_DEVICE', 'The device name is neither a text nor a whole number.')
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
    name(record, root, up, captures, sender) {
      for (const rule of rules) {
        const name =
          rule.kind === 'record' ? rule.name(record, root, up, captures, sender) : rule.name(captures, sender)
        if (name !== '') return name
      }
      return ''
    },
  }
}

/** Compiles `{operator}/{vehicle}`; throws Malformed. */
export function compileDeviceTemplate(text: string, captureNames: readonly string[]): DeviceRule {
  const parts: Part[] = []
  let asksSender = false
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
    const ofSender = index === -1 ? senderNames.find((known) => known === name) : undefined
    if (index !== -1) parts.push((captures) => captures[index] ?? '')
    else if (ofSender) parts.push(senderParts[ofSender])
    else throw new Malformed(unknownName(name, captureNames))
    asksSender ||= ofSender !== undefined
    at = close + 1
  }
  const join = joined(parts)
  if (asksSender) return { kind: 'sender', name: join }
  return { kind: 'topic', name: (captures) => join(captures, noSender) }
}

function joined(parts: readonly Part[]): Part {
  return (captures, sender) => {
    let name = ''
    for (const part of parts) {
      const text = part(captures, sender)
      if (text === '') return ''
      name += text
    }
    return name
  }
}

function unknownName(name: string, captureNames: readonly string[]): string {
  const known = [...captureNames, ...senderNames].map((each) => `{${each}}`).join(', ')
  return `names {${name}}, which is neither a capture of the topic nor a name of the sender; known are ${known}`
}
