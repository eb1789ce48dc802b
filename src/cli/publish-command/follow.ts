// follow.ts: follows one message through the daemon: the tap shows what the mapping makes of it, the ledger
// what becomes of the payloads.

import { pause, systemClock } from '../../std/clock.ts'
import { GatewayError } from '../../std/gateway-error.ts'
import type { IsoTimes } from '../../std/iso-times.ts'
import { formatDuration } from '../../std/quantity.ts'
import type { LedgerOutcome } from '../../domain/settlement.ts'
import type { LedgerAnswer, LedgerEntry } from '../../ledger/ledger.ts'
import { requestDaemon, requestDaemonLines, type Daemon } from '../daemon-client/daemon-client.ts'
import { mapResultText } from '../terminal/text-format.ts'

/** `ok`: false where the message is not delivered by it. */
export type Step = {
  kind: 'acknowledged' | 'mapped' | LedgerOutcome | 'waits'
  ok: boolean
  what: string
  payloadId?: string
  requestId?: string | null
}

type Deps = { daemon: Daemon; stop: AbortSignal }

type TapLine = {
  kind: string
  client?: string
  topic?: string
  source?: string | null
  result?: string
  payloads?: { payloadId?: string }[]
  reason?: string
  detail?: string
  rest?: { kind: string; reason: string; detail: string }[]
}

const mappedMs = 10_000
const askEveryMs = 250

export async function* followMessage(
  { daemon, stop }: Deps,
  { topic, client, waitMs }: { topic: string; client: string; waitMs: number },
  send: () => Promise<number>,
): AsyncGenerator<Step> {
  const tapped = new AbortController()
  const lines = requestDaemonLines({
    daemon,
    path: `/tap?${new URLSearchParams({ topic }).toString()}`,
    method: 'GET',
    stop: AbortSignal.any([stop, tapped.signal]),
  })
  let ids: readonly string[]
  try {
    // The first line says that the tap is open.
    await lines.next()
    const tookMs = await send()
    yield {
      kind: 'acknowledged',
      ok: true,
      what: `by PUBACK after ${tookMs.toFixed(1)} ms: it is on the disk`,
    }
    const line = await lineOf(lines, { topic, client }, tapped)
    const step = mappedStep(line)
    yield step
    ids = step.ok ? (line?.payloads ?? []).flatMap(({ payloadId }) => payloadId ?? []) : []
  } finally {
    tapped.abort()
  }
  // The timers of the clock do not keep the process alive.
  const alive = setInterval(() => undefined, 2 ** 30)
  const endAtMs = systemClock.monotonic() + waitMs
  try {
    for (const payloadId of ids) yield await settled({ daemon, stop }, payloadId, { endAtMs, waitMs })
  } finally {
    clearInterval(alive)
  }
}

/** Null where the tap does not show it in time: it shows at most 100 messages a second. */
async function lineOf(
  lines: AsyncGenerator<string>,
  { topic, client }: { topic: string; client: string },
  tapped: AbortController,
): Promise<TapLine | null> {
  const timer = setTimeout(() => tapped.abort(), mappedMs)
  try {
    for await (const text of lines) {
      const line = JSON.parse(text) as TapLine
      if (line.kind === 'message' && line.client === client && line.topic === topic) return line
    }
  } catch (error) {
    if (!tapped.signal.aborted) throw error
  } finally {
    clearTimeout(timer)
  }
  return null
}

function mappedStep(line: TapLine | null): Step {
  if (line === null) return { kind: 'mapped', ok: false, what: 'the daemon did not show the message' }
  const { source, result: kind = '', payloads = [], reason = '', detail = '', rest } = line
  const what = `by source ${source ?? 'none'}: ${mapResultText({ kind, payloads, reason, detail, rest })}`
  return { kind: 'mapped', ok: kind === 'payloads' && payloads.length > 0, what }
}

/** What became of the payload, as soon as the ledger knows it. */
export async function settled(
  { daemon, stop }: Deps,
  payloadId: string,
  { endAtMs, waitMs }: { endAtMs: number; waitMs: number },
): Promise<Step> {
  const path = `/ledger?${new URLSearchParams({ payload: payloadId, limit: '1' }).toString()}`
  do {
    const answer = (await requestDaemon({ daemon, path, method: 'GET', stop })) as IsoTimes<LedgerAnswer>
    const [entry] = answer.entries
    if (entry !== undefined) return settledStep(entry)
    if (systemClock.monotonic() >= endAtMs) {
      const what = `payload ${payloadId} is not settled after ${formatDuration(waitMs)}: it is kept and sent later. \`status\` shows why`
      return { kind: 'waits', ok: false, what, payloadId }
    }
  } while (await pause(systemClock, askEveryMs, stop))
  throw new GatewayError('DAEMON_UNREACHABLE', {
    what: 'The command was stopped.',
    why: 'The message is in the gateway and is delivered without it.',
    act: `\`telemetry-gateway ledger --payload ${payloadId}\` shows what becomes of it.`,
  })
}

function settledStep({ outcome, payloadId, requestId, reason, detail }: IsoTimes<LedgerEntry>): Step {
  const why = [reason, detail].filter((text) => text !== null && text !== '').join(': ')
  const what = [`payload ${payloadId}`, `requestId ${requestId ?? 'none'}`, ...(why === '' ? [] : [why])]
  return { kind: outcome, ok: outcome === 'delivered', what: what.join(', '), payloadId, requestId }
}
