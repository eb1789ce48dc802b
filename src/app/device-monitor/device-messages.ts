// device-messages.ts: the last messages of a device, each with what it becomes by the mapping in force, value
// by value, and what became of its payloads, up to the requestId of the service.
//
// A message is mapped again, because the payloads are not kept. Its payloads have the names that they had
// when it arrived (mapping/identity.ts), so the ledger knows them by their payloadId, unless the mapping was
// changed since. Messages that need others (collected, Sparkplug), or an expression, are shown raw.

import { isoTime } from '../../std/clock.ts'
import { noSender, type Message, type Sender } from '../../domain/message.ts'
import type { DeviceRecords, RecentMessage } from '../../device-records/device-records.ts'
import type { Ledger, LedgerEntry } from '../../ledger/ledger.ts'
import type { Explained, Explainer, MapResult, Mapping } from '../../mapping/mapping.ts'
import { contentOf, type DeviceMessage, type DeviceMessages, type MessageOutcome } from '../../ops/ops.ts'

type Deps = {
  records: Pick<DeviceRecords, 'find' | 'recent'>
  mapping: () => Mapping
  /** Null without a ledger. */
  ledger: Pick<Ledger, 'query'> | null
}

/** Entries of the device in the time of its last messages: a payload has one for each settlement. */
const entriesMax = 1000
const payloadsShown = 20

type Mapped = { message: RecentMessage; result: MapResult; explained: Explained | null }

export function createDeviceMessages({ records, mapping, ledger }: Deps) {
  return { messagesOf }

  async function messagesOf(
    device: string,
    { explain }: { explain: boolean },
    signal: AbortSignal,
  ): Promise<DeviceMessages> {
    const { messages, skipped } = records.recent(device)
    const explainer = mapping().explainer()
    const [known] = records.find(device)
    const sender = known?.sender ?? noSender
    const mapped = messages.map((message) => mapAgain(explainer, message, { sender, explain }))
    const entries = await entriesOf(device, mapped, signal)
    return { skipped, messages: mapped.map((one) => shown(one, entries)) }
  }

  /** By payloadId, newest first; null where the ledger cannot be asked. */
  async function entriesOf(
    device: string,
    mapped: readonly Mapped[],
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, readonly LedgerEntry[]> | null> {
    if (ledger === null) return null
    const times = mapped.flatMap(({ message, result }) =>
      result.kind === 'payloads'
        ? result.payloads.map(({ deviceTime }) => deviceTime ?? message.arrivedAt)
        : [],
    )
    const found = new Map<string, LedgerEntry[]>()
    if (times.length === 0) return found
    const range = { from: Math.min(...times), to: Math.max(...times) }
    // Payloads name the asset where `identify` of the source says so.
    const assets = records.find(device).map(({ assetId }) => assetId)
    for (const name of new Set([device, ...assets])) {
      const reply = await ledger.query({ device: name, ...range, limit: entriesMax }, signal)
      if (reply.kind !== 'answer') return null
      for (const entry of reply.answer.entries) {
        const known = found.get(entry.payloadId)
        if (known === undefined) found.set(entry.payloadId, [entry])
        else known.push(entry)
      }
    }
    return found
  }
}

/** `sender`: the one of the last message, which a source may take the device from. */
function mapAgain(
  explainer: Explainer,
  recent: RecentMessage,
  { sender, explain }: { sender: Sender; explain: boolean },
): Mapped {
  const { cutBytes, offsetMs, arrivedAt, became: _became, ...rest } = recent
  const message: Message = {
    ...rest,
    arrivedAt,
    sender,
    arrival: { bootId: '', monotonicMs: 0, offsetMs },
  }
  const result = explainer.mapper.map(message, false)
  // It takes the traces of the message, too.
  const explained = explainer.explain(message, result)
  return { message: recent, result, explained: explain && cutBytes === 0 ? explained : null }
}

function shown(
  { message, result, explained }: Mapped,
  entries: ReadonlyMap<string, readonly LedgerEntry[]> | null,
): DeviceMessage {
  const { arrivedAt, topic, qos, dup, retain, bytes, cutBytes, became } = message
  const isSame = became === result.kind
  const isWhole = cutBytes === 0 && (isSame || result.kind === 'payloads')
  const hasReason = result.kind === 'ignored' || result.kind === 'quarantined' || result.kind === 'unmappable'
  const mapped = isWhole && result.kind === 'payloads' ? result.payloads : []
  // A kept message became payloads later, if the ledger has them.
  const payloads = mapped.filter(({ payloadId }) => isSame || entries?.has(payloadId)).slice(0, payloadsShown)
  return {
    at: isoTime(arrivedAt),
    topic,
    qos,
    dup,
    retain,
    ...contentOf(bytes, cutBytes),
    became,
    reason: isSame && isWhole && hasReason ? result.reason : null,
    payloads: payloads.map(({ payloadId, json }) => ({
      payloadId,
      payload: JSON.parse(json) as unknown,
      outcomes: entries === null ? null : (entries.get(payloadId) ?? []).map(outcomeOf),
    })),
    ...(explained === null ? {} : { explained }),
  }
}

function outcomeOf({ at, outcome, requestId, batchId, reason, detail }: LedgerEntry): MessageOutcome {
  return { at: isoTime(at), outcome, requestId, batchId, reason, detail }
}
