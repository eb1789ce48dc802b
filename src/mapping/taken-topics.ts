// taken-topics.ts: which topics the sources take, and how a device must name itself there, as sentences for
// the person who sets up the devices.

import type { Message } from '../domain/message.ts'
import { quote } from '../std/quote.ts'
import { parseTopic, patternText, senderNames, type TopicPattern } from './path/topic-pattern.ts'

const topicsShownMax = 10
const topicLengthMax = 120

type Taking = { patterns: readonly TopicPattern[] }

/** `telemetry/v1/{device}, hfp/#`: as the config writes them, the first ones of many. */
export function takenTopics(sources: readonly Taking[]): string {
  const topics = [...new Set(sources.flatMap(({ patterns }) => patterns.map(patternText)))]
  if (topics.length === 0) return 'none'
  const shown = topics.slice(0, topicsShownMax).map((topic) => topic.slice(0, topicLengthMax))
  const more = topics.length > shown.length ? ` and ${topics.length - shown.length} more` : ''
  return `${shown.join(', ')}${more}`
}

/** Of a message that no source takes. */
export function noSourceText({ topic, from }: Message, taken: string): string {
  const source = from ? ` from ${quote(from, 64)}` : ''
  return `No source takes the topic ${quote(topic, 120)}${source}. Taken are ${taken}.`
}

type TopicSource = {
  topic: string | readonly string[]
  device?: unknown
  identity?: string | undefined
}

const senders: Readonly<Record<string, string>> = {
  clientid: 'its client id',
  username: 'its user name',
  certificate: 'the name in its certificate',
  identity: 'the name that it logs in with',
}

/** What a device of the source must do, as sentences. */
export function deviceRules({ topic, device, identity }: TopicSource): string[] {
  const topics = [topic].flat()
  const names = [device ?? '{device}'].flat().map(nameText)
  const captures = topics.flatMap((text) => parseTopic(text).captures)
  const isOneOf = topics.length === 1 ? 'the topic' : 'one of the topics'
  return [
    `Publish to ${isOneOf} ${topics.join(', ')}.`,
    ...(topics.some((text) => text.endsWith('#')) ? ['# stands for any further levels, or none.'] : []),
    `The name of the device is ${[...new Set(names)].join(', or else ')}.`,
    ...(identity === undefined || !captures.includes(identity)
      ? []
      : [`{${identity}} must be the user name of the device (or the name in its certificate).`]),
  ]
}

function nameText(rule: unknown): string {
  if (typeof rule !== 'string') {
    const { path } = Object(rule) as { path?: unknown }
    return `the value at ${[path].flat().join(' or ')} of the message`
  }
  const sender = senderNames.find((name) => rule === `{${name}}`)
  return sender === undefined ? `${rule} of the topic` : (senders[sender] ?? rule)
}
