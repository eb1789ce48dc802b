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
import { partitionsMax, type SetupFinding } from './stream-setup.ts'
import { mqttStream } from '../types.ts'

const probesOfFilter = 8
/** The same for the whole run: a finding that stays has the same words. */
const probe = `gateway-probe-${randomBytes(4).toString('hex')}`
/** After NATS has answered a PING that followed the last one. */
const probeMs = 500

export type MappingFound = {
  /** Number of partitions of the account; null where none fits, or no probe came back. */
  mapped: number | null
  /** `unknown`: no probe came back, because the user has no right to them. */
  state: 'in_order' | 'unknown' | 'differs' | 'behind'
  /** Null where it is in order or unknown. */
  finding: SetupFinding | null
}

export async function probeMapping({ nc }: Connection, layout: PartitionLayout): Promise<MappingFound> {
  const { prefix, partitions } = layout
  if (partitions === 1 || layout.stream !== mqttStream)
    return { mapped: null, state: 'in_order', finding: null }
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
  return came.size === 0
    ? { mapped: null, state: 'unknown', finding: null }
    : judgeMapping(sent, came, layout)
}

/** `came`: the subjects under which the probes came out. */
export function judgeMapping(
  sent: readonly string[],
  came: ReadonlySet<string>,
  layout: PartitionLayout,
): MappingFound {
  const { prefix, partitions } = layout
  const numberOf = (subject: string) => {
    const found = [...came].find((other) => other.startsWith(`${prefix}.`) && other.endsWith(`.${subject}`))
    return found === undefined ? null : Number(found.split('.')[1])
  }
  const lines = `mappings { ${mappingLines(layout).join(', ')} }`
  const fits = (number: number) =>
    sent.every(
      (subject) => numberOf(subject) === partitionOf(topicOf(subject), { ...layout, partitions: number }),
    )
  const numbers = Array.from({ length: partitionsMax }, (_, index) => index + 1)
  const mapped = fits(partitions) ? partitions : (numbers.find(fits) ?? null)
  if (mapped === partitions) return { mapped, state: 'in_order', finding: null }
  const differs = (detail: string, act: string): MappingFound => ({
    mapped,
    state: 'differs',
    finding: { detail, act },
  })
  if (mapped !== null && mapped > partitions)
    return differs(
      `NATS maps the devices to ${mapped} partitions, and this gateway has ${partitions}. Where the durables ` +
        `${prefix}-${partitions} to ${prefix}-${mapped - 1} do not exist, NATS acknowledges their messages to the devices and ` +
        'stores none: they are lost',
      `Set the former lines in the account of nats-server now, and reload it: ${lines}. Then give all gateways ` +
        `\`durables.partitions\`: ${mapped}, and change the account last.`,
    )
  if (mapped !== null)
    return {
      mapped,
      state: 'behind',
      finding: {
        detail: `NATS maps the devices to ${mapped} partitions, and this gateway has ${partitions}. Nothing is lost by that`,
        act:
          `When all gateways have \`durables.partitions\`: ${partitions}, replace the lines in the account of nats-server, and ` +
          `reload it: ${lines}`,
      },
    }
  const wrong = sent.find((subject) => numberOf(subject) !== partitionOf(topicOf(subject), layout)) ?? ''
  const found = numberOf(wrong)
  return found === null
    ? differs(
        `NATS does not map the subject ${wrong} to a partition. It acknowledges such messages and stores none`,
        `Add to the account in nats-server, and reload it: ${lines}`,
      )
    : differs(
        `NATS maps the subject ${wrong} to the partition ${found}, and \`topics\` and \`partitions\` (${partitions}) say ` +
          `${partitionOf(topicOf(wrong), layout)}`,
        `Correct the account in nats-server, and reload it: ${lines}`,
      )
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

/** Compares messages of one partition. `mapped`: the number of partitions of the account; null: not known. */
export function createMappingWatch(
  layout: PartitionLayout,
  partition: number,
  { report, mapped }: { report: (finding: SetupFinding | null) => void; mapped: () => number | null },
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
    // While the number of partitions grows, the account is behind for a time.
    const behind = partitionOf(topic, { ...layout, partitions: mapped() ?? layout.partitions })
    if (wanted === partition || behind === partition) return
    inOrder = 0
    report({
      detail:
        `A message on ${topic} came in the partition ${partition}, and its device belongs to ${wanted}. A device that is ` +
        'in two partitions can come out of order',
      act: `Correct the account in nats-server: mappings { ${mappingLines(layout).join(', ')} }`,
    })
  }
}
