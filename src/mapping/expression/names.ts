// names.ts: what the names of an expression stand for.
//
//   speed, gps.lat        keys of the record
//   record["69"]          the same, for keys that are no names of the language
//   message.imei          from the message itself, where `each` has chosen a part of it
//   outer.key             from the record one level out, where `each` has several steps; outer.outer.key
//   topic.event           a capture of the topic
//   previous.odo          the value in the newest earlier record of the device; previous.time is its time
//   packet.user.vin       a user property of a message of MQTT 5; packet.content_type is another property
//
// These words mean the same in every message; a key of such a name is `record.topic`. A name with constant
// keys behind it is a path, and is read as one.

import type { Path } from '../path/path.ts'
import { levelsMax } from '../path/path.ts'
import type { Step } from '../path/path-eval.ts'
import { Malformed } from '../path/text-cursor.ts'
import type { Node } from './syntax.ts'

/** The properties of a message of MQTT 5 that paths and expressions can read. */
export const packetNames = [
  'content_type',
  'response_topic',
  'correlation_data',
  'payload_format',
  'message_expiry',
] as const

/** A name of the language in a place where it means nothing. */
export class MisusedName extends Malformed {}

/** The name that a chain of constant keys starts with, and the keys. */
type Chain = { root: string; steps: readonly Step[] }

/** Undefined for a node that is no such chain. */
export function chainOf(node: Node): Chain | undefined {
  if (node.op === 'id') return { root: node.args, steps: [] }
  if (node.op === '.') {
    const [of, key] = node.args
    return longer(chainOf(of), { kind: 'key', key })
  }
  if (node.op !== '[]') return undefined
  const [of, index] = node.args
  const step = stepOf(constantOf(index))
  return step && longer(chainOf(of), step)
}

function longer(chain: Chain | undefined, step: Step): Chain | undefined {
  return chain && { root: chain.root, steps: [...chain.steps, step] }
}

function stepOf(index: unknown): Step | undefined {
  if (typeof index === 'string') return { kind: 'key', key: index }
  return Number.isSafeInteger(index) ? { kind: 'element', index: Number(index) } : undefined
}

/** Undefined for a node that is no number, text, true, false or null. */
export function constantOf(node: Node): unknown {
  if (node.op === '-_') {
    const value = constantOf(node.args)
    return typeof value === 'number' ? -value : undefined
  }
  if (node.op !== 'value') return undefined
  const value: unknown = node.args
  if (typeof value === 'bigint') return Number(value)
  if (typeof value === 'number' || typeof value === 'string' || typeof value === 'boolean') return value
  return value === null ? null : undefined
}

/** What a chain reads: a path, or a capture of the topic. Throws Malformed. */
export function placeOf({ root, steps }: Chain, captures: readonly string[]): Path | { capture: number } {
  switch (root) {
    case 'record':
      return { from: 'record', levels: 0, steps }
    case 'message':
      return { from: 'root', levels: 0, steps }
    case 'outer':
      return outerPath(steps)
    case 'topic':
      return { capture: captureOf(steps, captures) }
    case 'previous':
      return previousPath(steps)
    case 'packet':
      return packetPath(steps)
    default:
      return { from: 'record', levels: 0, steps: [{ kind: 'key', key: root }, ...steps] }
  }
}

function outerPath(steps: readonly Step[]): Path {
  let levels = 1
  for (const step of steps) {
    if (step.kind !== 'key' || step.key !== 'outer') break
    levels += 1
  }
  if (levels > levelsMax) throw new Malformed(`has more than ${levelsMax} levels of outer`)
  return { from: 'up', levels, steps: steps.slice(levels - 1) }
}

function captureOf(steps: readonly Step[], captures: readonly string[]): number {
  const [first] = steps
  const name = first?.kind === 'key' ? first.key : ''
  const index = captures.indexOf(name)
  if (index !== -1 && steps.length === 1) return index
  const known = captures.length === 0 ? 'no captures' : `the captures ${captures.join(', ')}`
  throw new MisusedName(
    `has topic${name === '' ? '' : `.${name}`}, but the topic has ${known}; a key named topic is record.topic`,
  )
}

function previousPath(steps: readonly Step[]): Path {
  const [first, ...others] = steps
  if (first === undefined) throw new MisusedName('has previous without a key, such as previous.odo')
  const isTime = first.kind === 'key' && first.key === 'time' && others.length === 0
  return { from: 'previous', levels: 0, steps: isTime ? [{ kind: 'key', key: '$time' }] : steps }
}

function packetPath([first, ...others]: readonly Step[]): Path {
  const name = first?.kind === 'key' ? first.key : ''
  if (name === 'user' && others.length === 1)
    return { from: 'root', levels: 0, steps: [{ kind: 'key', key: '$properties' }, ...others] }
  if (packetNames.some((known) => known === name) && others.length === 0)
    return {
      from: 'root',
      levels: 0,
      steps: [
        { kind: 'key', key: '$packet' },
        { kind: 'key', key: name },
      ],
    }
  throw new MisusedName(
    `has packet.${name}; known are packet.user.NAME and packet.${packetNames.join(', packet.')}. ` +
      'A key named packet is record.packet',
  )
}
