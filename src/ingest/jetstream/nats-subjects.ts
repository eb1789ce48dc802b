// nats-subjects.ts: topics of MQTT and subjects of NATS, and the subjects of the partitions. Pure.
//
// NATS stores a message of the topic `a/b` under the subject `$MQTT.msgs.a.b`. Its translation keeps apart
// what a level may contain and what a subject may not:
//
//   topic     /        level ends       ->   .
//             .        within a level   ->   //
//             empty level               ->   / in its place        /a = /.a    a//b = a./.b    a/ = a./
//
// Back it reads from left to right: `//` is a dot, `/` before a dot or at the end is an empty level, and a
// dot ends a level. NATS 2.9 refuses topics with dots; all versions refuse blanks.
//
// Partitions. The account of NATS maps the subjects of the devices (`mappings`), and adds prefix and
// partition before the subject of the topic:
//
//   telemetry.v1.*   ->   gw.{{partition(4,1)}}.telemetry.v1.{{wildcard(1)}}
//
// so that the durable of a partition has one filter, `$MQTT.msgs.gw.2.>`, whatever the topics are. NATS
// computes FNV-1a of the token of the device, modulo the number of partitions: `partitionOf` computes the
// same, to find a mapping that splits a device or has another number. With one partition nothing is mapped.

import { mqttStream, type JetStreamOptions } from './types.ts'

export type PartitionLayout = Pick<JetStreamOptions, 'stream' | 'topics' | 'prefix' | 'partitions'>

const mqttPrefix = '$MQTT.msgs.'

const dot = 0x2e
const slash = 0x2f

/** The subject of a topic, or of a filter where `wildcards` are translated, too. */
export function subjectOf(topic: string): string {
  const levels = topic.split('/')
  return levels.map((level) => (level === '' ? '/' : level.replaceAll('.', '//'))).join('.')
}

export function filterSubject(filter: string): string {
  return subjectOf(filter)
    .split('.')
    .map((token) => (token === '+' ? '*' : token === '#' ? '>' : token))
    .join('.')
}

/** The topic of the subject from `start` on. */
export function topicOf(subject: string, start = 0): string {
  if (!subject.includes('/', start)) return subject.slice(start).replaceAll('.', '/')
  let topic = ''
  for (let at = start; at < subject.length; at += 1) {
    const code = subject.charCodeAt(at)
    if (code === dot) topic += '/'
    else if (code !== slash) topic += subject[at]
    else if (subject.charCodeAt(at + 1) === slash) {
      topic += '.'
      at += 1
    }
    // Else the level is empty, and what ends it is read next.
  }
  return topic
}

/** What the durable of a partition gets of the stream. Several filters need NATS 2.10. */
export function partitionFilters(layout: PartitionLayout, partition: number): string[] {
  const base = streamPrefix(layout)
  if (layout.partitions > 1) return [`${base}${layout.prefix}.${partition}.>`]
  return [...new Set(layout.topics.flatMap(({ filter }) => filterSubjects(filter)))].map(
    (subject) => base + subject,
  )
}

/** The characters of a subject in the stream before the subject of its topic. */
export function topicStart(layout: PartitionLayout, partition: number): number {
  const base = streamPrefix(layout)
  return layout.partitions > 1 ? `${base}${layout.prefix}.${partition}.`.length : base.length
}

function streamPrefix({ stream }: PartitionLayout): string {
  return stream === mqttStream ? mqttPrefix : ''
}

/** `a/#` has the topic `a`, too (MQTT 4.7.1.2); `a.>` does not have the subject `a`. */
function filterSubjects(filter: string): string[] {
  const parents = filter.endsWith('/#') ? [filter.slice(0, -2)] : []
  return [...parents, filter].map(filterSubject)
}

export function durableName({ prefix }: Pick<PartitionLayout, 'prefix'>, partition: number): string {
  return `${prefix}-${partition}`
}

/** The lines of `mappings` in the account of NATS; none for one partition. */
export function mappingLines({ topics, prefix, partitions }: PartitionLayout): string[] {
  if (partitions === 1) return []
  return topics.flatMap(({ filter, device }) =>
    filterSubjects(filter).map((source) => {
      let wildcard = 0
      const tokens = source
        .split('.')
        .map((token) => (token === '*' ? `{{wildcard(${(wildcard += 1)})}}` : token))
      return `"${source}": "${prefix}.{{partition(${partitions},${device})}}.${tokens.join('.')}"`
    }),
  )
}

/** The partition that NATS computes for a topic; null where no filter has it. */
export function partitionOf(topic: string, { topics, partitions }: PartitionLayout): number | null {
  const found = topics.find(({ filter }) => matches(filter, topic))
  if (found === undefined) return null
  const levels = filterSubject(found.filter).split('.')
  const wildcards = subjectOf(topic)
    .split('.')
    .filter((_, index) => levels[index] === '*')
  return fnv1a(wildcards[found.device - 1] ?? '') % partitions
}

/** Whether a topic has what the filter asks for (MQTT 4.7). */
function matches(filter: string, topic: string): boolean {
  const wanted = filter.split('/')
  const levels = topic.split('/')
  for (const [index, level] of wanted.entries()) {
    if (level === '#') return true
    if (index >= levels.length || (level !== '+' && level !== levels[index])) return false
  }
  return wanted.length === levels.length
}

function fnv1a(text: string): number {
  let hash = 0x811c9dc5
  for (const byte of Buffer.from(text)) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0
  return hash
}
