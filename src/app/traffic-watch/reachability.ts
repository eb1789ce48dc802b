// reachability.ts: whether messages could come now, or the gateway itself keeps them away. Where they could
// not, that none come says nothing about the devices.

import type { CustodyView, MessageSourceStatus } from '../../ingest/ingest.ts'

type Source = Pick<MessageSourceStatus, 'links' | 'partitions' | 'traits' | 'lastMessageAt'>

type Ways = {
  /** One of the listeners is open. */
  isListening: boolean
  sources: readonly Source[]
  /** Null in custody `spool`. */
  custody: Pick<CustodyView, 'holds'> | null
}

/** By a listener, or by the server of a bridge that is connected and may bring messages to this gateway. */
export function isReachable({ isListening, sources, custody }: Ways): boolean {
  if (custody?.holds === true) return false
  return isListening || sources.some(brings)
}

/** Of which nothing can come now. */
export function closedSources(sources: readonly (Source & { name: string })[]): ReadonlySet<string> {
  return new Set(sources.filter((source) => !brings(source)).map(({ name }) => name))
}

function brings({ links, partitions, traits, lastMessageAt }: Source): boolean {
  if (!links.some(({ state }) => state === 'connected')) return false
  if (!traits.partitioned) return true
  const active = partitions.filter(({ role }) => role === 'active')
  // Nothing more is taken of a partition whose window is used up.
  if (active.length > 0) return active.some(({ outstanding }) => outstanding < traits.windowMax)
  // Other gateways may have all partitions. RabbitMQ does not say so; NATS does.
  return lastMessageAt !== null && partitions.some(({ role }) => role === null)
}
