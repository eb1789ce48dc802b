// publish-rules.ts: what a client may publish to.
//
//   rules of the broker   `ingest.broker.rules.publish`: topics by patterns; at least one must allow a topic
//   own name              `sources[].identity`: a capture of the topic must be the identity of the client
//
// A message that is not allowed is acknowledged, counted and dropped, or its connection is closed
// (`on_violation`): MQTT 3.1.1 has no other answer. It is counted for its identity, reported at most every
// `eventEveryMs` for each identity, and shown at the client in the device list.
//
// Rules are compiled once, for a connection at its first message. What was decided about a topic is kept with
// the connection, so a message costs one comparison of its topic with the one before; a connection with
// several topics costs a look-up. Without a rule nothing is compared.
//
//   publish-rules-config.ts   the section of the config
//   allowed-topics.ts         the patterns of the rules

import type { Clock } from '../../../std/clock.ts'
import type { Emit } from '../../../domain/event.ts'
import type { Sender } from '../../../domain/message.ts'
import { quote } from '../../../std/quote.ts'
import { createReasonCounter, type ReasonCount } from '../../intake/reason-counter.ts'
import type { Clients } from '../clients/clients.ts'
import { compileRules, type MatchAllowed, type PublishRule } from './allowed-topics.ts'

export type PublishRulesOptions = {
  /** None: every topic is allowed. */
  publish: readonly PublishRule[]
  onViolation: 'drop' | 'close'
}

export type Violation = keyof typeof violations

/** Why a message was refused: a label of the metrics, and the end of "... published to X, which ...". */
export const violations = {
  topic_not_allowed: 'no rule of ingest.broker.rules allows',
  not_own_name: 'bears the name of another identity',
} as const

/** The identity whose topic it is; null where it may be that of anyone. */
export type OwnerOf = (topic: string) => string | null

/** A connection; `decisions` belongs to this file. */
export type RestrictedConnection = { readonly address: string | null; decisions: Decisions | null }

export type Decisions = {
  ownerOf: OwnerOf | null
  isAllowed: MatchAllowed | null
  topic: string
  violation: Violation | null
  /** Of earlier topics. */
  others: Map<string, Violation | null>
}

export type PublishRules = {
  /** Null for a message that is allowed. */
  violationOf(connection: RestrictedConnection, sender: Sender, topic: string): Violation | null
  /** Counts and reports one; returns the sentence for its connection. */
  refused(connection: RestrictedConnection, sender: Sender, topic: string, violation: Violation): string
  /** Refused messages by reason, and by identity and reason. */
  counters(): {
    refusedMessages: ReadonlyMap<string, number>
    /** `source` is the identity; null for anonymous clients. */
    refusedByIdentity: readonly ReasonCount[]
  }
}

type Deps = {
  /** Of the mapping in force; null where no source restricts its topics. */
  owners: { currentOwnerOf(): OwnerOf | null }
  clients: Pick<Clients, 'messageRefused'>
  clock: Clock
  emit: Emit
}

const eventEveryMs = 10_000
/** Topics of a connection that are remembered; beyond that all are decided again. */
const topicsMax = 16
const topicLengthMax = 256

export function createPublishRules(
  { owners, clients, clock, emit }: Deps,
  { publish }: PublishRulesOptions,
): PublishRules {
  const compile = publish.length === 0 ? null : compileRules(publish)
  const byReason = createReasonCounter(clock, { eventEveryMs })
  const byIdentity = createReasonCounter(clock, { eventEveryMs })
  return {
    violationOf,
    refused,
    counters: () => ({ refusedMessages: byReason.byReason(), refusedByIdentity: byIdentity.counts() }),
  }

  function violationOf(connection: RestrictedConnection, sender: Sender, topic: string): Violation | null {
    const ownerOf = owners.currentOwnerOf()
    if (compile === null && ownerOf === null) return null
    const { decisions } = connection
    if (decisions?.topic === topic && decisions.ownerOf === ownerOf) return decisions.violation
    return decide(connection, sender, topic)
  }

  function decide(connection: RestrictedConnection, sender: Sender, topic: string): Violation | null {
    const ownerOf = owners.currentOwnerOf()
    let { decisions } = connection
    // Another mapping may have other sources.
    if (decisions?.ownerOf !== ownerOf) {
      const isAllowed = compile === null ? null : compile(sender)
      decisions = { ownerOf, isAllowed, topic: '', violation: null, others: new Map() }
      connection.decisions = decisions
    }
    let violation = decisions.others.get(topic)
    if (violation === undefined) {
      violation = judge(decisions, sender, topic)
      if (decisions.others.size >= topicsMax) decisions.others.clear()
      if (topic.length <= topicLengthMax) decisions.others.set(topic, violation)
    }
    decisions.topic = topic
    decisions.violation = violation
    return violation
  }

  function judge({ isAllowed, ownerOf }: Decisions, sender: Sender, topic: string): Violation | null {
    if (isAllowed !== null && !isAllowed(topic)) return 'topic_not_allowed'
    const owner = ownerOf === null ? null : ownerOf(topic)
    return owner === null || owner === sender.identity ? null : 'not_own_name'
  }

  function refused(
    { address }: RestrictedConnection,
    sender: Sender,
    topic: string,
    violation: Violation,
  ): string {
    const { clientId, identity } = sender
    const detail = `It published to ${quote(topic, 100)}, which ${violations[violation]}.`
    byReason.add(null, violation)
    const isReported = byIdentity.add(identity, violation)
    clients.messageRefused(sender, { reason: violation, detail })
    if (isReported)
      emit({ kind: 'publish_refused', reason: violation, detail, clientId, identity, address, topic })
    return detail
  }
}
