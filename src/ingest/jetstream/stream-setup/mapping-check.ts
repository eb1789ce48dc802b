// mapping-check.ts: whether the account of NATS maps the subjects of the devices to the partitions as the
// config says. The gateway cannot read `mappings`, so it looks at what they do.
//
//   at each connection,  a few empty messages on subjects of invented devices, over the core of NATS, which
//   and every 30 s       are not stored: where do they come out? Only for the stream of MQTT; a stream of
//                        others could store them
//   while it takes       the first messages of each partition, then some: does NATS compute the same
//                        partition?
//
// Without the mapping NATS acknowledges to the devices and stores nothing: no durable has the subject.

import { randomBytes } from 'node:crypto'
import type { Connection } from '../nats-connection.ts'
import { filterSubject, mappingLines, partitionOf, topicOf, type PartitionLayout } from '../nats-subjects.ts'
import type { SetupFinding } from './stream-setup.ts'
import { mqttStream } from '../types.ts'

const probesOfFilter = 8
/** The same for the whole run: a finding that stays has the same words. */
const probe = `gateway-probe-${randomBytes(4).toString('hex')}`
/** After NATS has answered a PING that followed the last one. */
const probeMs = 500

/** Null where it is in order; `unknown`: no probe came back, because the user has no right to them. */
export async function probeMapping(
  { nc }: Connection,
  layout: PartitionLayout,
): Promise<SetupFinding | 'unknown' | null> {
  if (layout.partitions === 1 || layout.stream !== mqttStream) return null
  const { prefix, partitions } = layout
  const sent = layout.topics.flatMap(({ filter }) =>
    Array.from({ length: probesOfFilter }, (_, number) => probeSubject(filter, `${probe}-${number}`)),
  )
  const came = new Set<string>()
  const { promise, resolve } = Promise.withResolvers<void>()
  const callback = (error: Error | null, message: { subject: string }) => {
    if (error === null) came.add(message.subject)
    if (error !== null || came.size === sent.length) resolve()
  }
  const subscriptions = [
    nc.subscribe(`${prefix}.>`, { callback }),
    ...layout.topics.map(({ filter }) => nc.subscribe(filterSubject(filter), { callback })),
  ]
  try {
    for (const subject of sent) nc.publish(subject)
    await nc.flush()
    await Promise.race([promise, new Promise((done) => setTimeout(done, probeMs))])
  } finally {
    for (const subscription of subscriptions) subscription.unsubscribe()
  }
  if (came.size === 0) return 'unknown'
  const lines = `mappings { ${mappingLines(layout).join(', ')} }`
  for (const subject of sent) {
    const topic = topicOf(subject)
    const wanted = partitionOf(topic, layout)
    const found = [...came].find((other) => other.startsWith(`${prefix}.`) && other.endsWith(`.${subject}`))
    const number = Number(found?.split('.')[1])
    if (found === undefined && came.has(subject))
      return {
        detail: `NATS does not map the subject ${subject} to a partition. It acknowledges such messages and stores none`,
        act: `Add to the account in nats-server, and reload it: ${lines}`,
      }
    if (found !== undefined && number !== wanted)
      return {
        detail:
          `NATS maps the subject ${subject} to the partition ${found.split('.')[1]}, and \`topics\` and \`partitions\` ` +
          `(${partitions}) say ${wanted}`,
        act:
          'If the other gateways have another number, correct `durables.partitions` here. Otherwise correct the account ' +
          `in nats-server, and reload it: ${lines}`,
      }
  }
  return null
}

function probeSubject(filter: string, device: string): string {
  return filterSubject(filter)
    .split('.')
    .map((token) => (token === '*' || token === '>' ? device : token))
    .join('.')
}

const firstMessages = 200
const everyMessages = 64
/** After so many of them without a difference it is in order. */
const calmMessages = 500

export type MappingWatch = (topic: string) => void

/** Compares messages of one partition. */
export function createMappingWatch(
  layout: PartitionLayout,
  partition: number,
  report: (finding: SetupFinding | null) => void,
): MappingWatch {
  let messages = 0
  let inOrder = calmMessages

  return function watch(topic) {
    messages += 1
    if (messages > firstMessages && messages % everyMessages !== 0) return
    const wanted = partitionOf(topic, layout)
    if (wanted === null || layout.partitions === 1) return
    inOrder += 1
    if (inOrder === calmMessages) report(null)
    if (wanted === partition) return
    inOrder = 0
    report({
      detail:
        `A message on ${topic} came in the partition ${partition}, and its device belongs to ${wanted}. A device that is ` +
        'in two partitions can come out of order',
      act: `Correct the account in nats-server: mappings { ${mappingLines(layout).join(', ')} }`,
    })
  }
}
