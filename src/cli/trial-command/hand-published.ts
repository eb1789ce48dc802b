// hand-published.ts: messages that do not come from the simulated vehicles: each with its topic and client,
// what the mapping made of it, and what became of its payloads, up to the requestId.
//
//   tap of the gateway (without the vehicles) -> mapped -> ledger of each payload -> accepted, or why not
//
// The tap copies 100 messages a second and keeps 256 that are not read yet; this shows how many it left out.
// At most `followedMax` payloads are followed at a time; for another one it says that it is not followed.

import { systemClock } from '../../std/clock.ts'
import { GatewayError } from '../../std/gateway-error.ts'
import { plural } from '../../std/quantity.ts'
import { visible } from '../../std/quote.ts'
import type { Gateway } from '../../app/app.ts'
import { settled, type Step } from '../publish-command/follow.ts'
import { mapResultText } from '../terminal/text-format.ts'

export type HandPublished = {
  /** Reads what came since the last call. */
  read(): void
  /** Messages since the start. */
  messages(): number
}

type Deps = {
  gateway: Gateway
  /** Whether the client is a simulated vehicle. */
  isVehicle: (clientId: string) => boolean
  /** Shows lines that belong together. */
  show: (at: number, lines: readonly string[]) => void
  stop: AbortSignal
}

const followedMax = 100
const waitMs = 60_000

type Taps = NonNullable<Gateway['taps']>
type TapReader = Extract<ReturnType<Taps['open']>, { kind: 'open' }>['reader']
type TapEntry = ReturnType<TapReader['take']>[number]
type Reader = { taps: Taps; take(): TapEntry[]; takeDropped(): number }

export function createHandPublished({ gateway, isVehicle, show, stop }: Deps): HandPublished {
  const following = new Set<Promise<void>>()
  let reader: Reader | null = null
  let messages = 0
  read()
  return { read, messages: () => messages }

  function read(): void {
    // The gateway has another tap after it has opened its spool again.
    const { taps } = gateway
    if (taps !== null && reader?.taps !== taps) reader = open(taps)
    if (reader === null) return
    for (const entry of reader.take()) if (entry.kind === 'message') showMessage(entry)
    const dropped = reader.takeDropped()
    messages += dropped
    if (dropped > 0)
      show(systemClock.now(), [`by hand: ${plural(dropped, 'more message')} not shown, too many at once`])
  }

  function open(taps: Taps): Reader | null {
    const filter = { device: null, topic: null, source: null, passes: (id: string) => !isVehicle(id) }
    // Read each time the report is drawn.
    const opened = taps.open(filter, () => undefined)
    return opened.kind === 'open' ? { taps, ...opened.reader } : null
  }

  function showMessage({ topic, qos, sender, arrivedAt, result }: TapEntry & { kind: 'message' }): void {
    messages += 1
    const { kind, source, rest } = result
    const payloads = result.kind === 'payloads' ? result.payloads : []
    const reason = 'reason' in result ? result.reason : ''
    const detail = 'detail' in result ? result.detail : ''
    const mapped = mapResultText({ kind, payloads, reason, detail, rest })
    show(arrivedAt, [
      visible(`by hand: ${topic}`),
      visible(`client ${sender.clientId}, QoS ${qos}`),
      visible(source === null ? mapped : `source ${source}: ${mapped}`),
    ])
    for (const { payloadId } of payloads) follow(topic, payloadId)
  }

  function follow(topic: string, payloadId: string): void {
    if (following.size >= followedMax)
      return show(systemClock.now(), [visible(`by hand: ${topic}`), `payload ${payloadId} is not followed`])
    // Handled in outcomeOf.
    const followed = outcomeOf(topic, payloadId).finally(() => following.delete(followed))
    following.add(followed)
  }

  async function outcomeOf(topic: string, payloadId: string): Promise<void> {
    const daemon = { url: gateway.addresses.ops, headers: {} }
    const endAtMs = systemClock.monotonic() + waitMs
    try {
      const step = await settled({ daemon, stop }, payloadId, { endAtMs, waitMs })
      show(systemClock.now(), [visible(`by hand: ${topic}`), ...stepLines(step)])
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error
      if (!stop.aborted) show(systemClock.now(), [visible(`by hand: ${topic}`), visible(error.what)])
    }
  }
}

const outcomes: Partial<Record<Step['kind'], string>> = {
  delivered: 'accepted by the service',
  retried: 'retried',
  dead: 'dead letter',
  returned: 'given back to its source',
}

/** One fact a line: ids have 36 characters. */
function stepLines({ kind, what }: Step): string[] {
  const outcome = outcomes[kind]
  return outcome === undefined ? [visible(what)] : [outcome, ...what.split(', ').map(visible)]
}
