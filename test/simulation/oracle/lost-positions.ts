// lost-positions.ts: what must become of positions while the mapping looks for them where they are not. A message that is
// read then gives a payload without a position. When the daemon has noticed the loss, it keeps such messages, and mapped
// again they give the position by itself, once.

import type { GatewayEvent } from '../../../src/domain/event.ts'
import { mayLosePosition } from '../world/contents.ts'
import type { SentMessage } from '../world/fleet.ts'

export type LostPositions = {
  observe(event: GatewayEvent, atMs: number): void
  /** The config on the disk has the wrong path, or the right one. */
  changed(isLost: boolean, atMs: number): void
  /** The right path is on the disk, and perhaps not in force. */
  needsReload(): boolean
  /** It may have been read with the wrong path. */
  mayLack(message: SentMessage): boolean
  /** It was read while the daemon knew that the position is lost. */
  isKept(message: SentMessage): boolean
}

/** A process that has started so soon after a change of the config may have read the one before. */
const readsMs = 1000
/** The daemon looks each second. */
const looksMs = 1500

type Span = { provider: string; fromMs: number; toMs: number }

export function createLostPositions(): LostPositions {
  const wrong: Span[] = []
  const noticed: Span[] = []
  let isLost = false
  let changedMs = 0
  return {
    changed(isLostNow, atMs) {
      isLost = isLostNow
      changedMs = atMs
      // The mapping of before stays in force until the next one is.
      if (isLost) begin(wrong, '', atMs)
      else end(noticed, atMs)
    },
    observe(event, atMs) {
      const { kind } = event
      const provider = lostOf(event)
      if (kind === 'condition_raised' && provider !== null && isLost) begin(noticed, provider, atMs)
      // It was over at some time since the look before.
      if (kind === 'condition_cleared' && provider !== null) end(noticed, atMs - looksMs, provider)
      if (kind === 'gateway_starting' || kind === 'store_lost' || kind === 'spool_refused') end(noticed, atMs)
      const isRead =
        (kind === 'mapping_reloaded' && event.cause === 'by request') ||
        (kind === 'gateway_starting' && atMs > changedMs + readsMs)
      if (!isLost && isRead) end(wrong, atMs)
    },
    needsReload: () => !isLost && wrong.some(({ toMs }) => toMs === Infinity),
    mayLack: ({ device, sentMs, ackedMs }) =>
      mayLosePosition(device.kind) &&
      wrong.some(({ fromMs, toMs }) => (sentMs[0] ?? Infinity) <= toMs && (ackedMs ?? Infinity) >= fromMs),
    isKept: ({ device, sentMs, ackedMs }) =>
      mayLosePosition(device.kind) &&
      sentMs.length === 1 &&
      noticed.some(
        ({ provider, fromMs, toMs }) =>
          provider === device.provider && sentMs[0]! > fromMs && ackedMs !== null && ackedMs < toMs,
      ),
  }
}

/** The provider whose field is lost; null where the event is not about that. */
function lostOf(event: GatewayEvent): string | null {
  if (!('code' in event) || event.code !== 'FIELD_LOST') return null
  return (event.key ?? '').replace(/-trucks\|.*$/, '')
}

function begin(spans: Span[], provider: string, atMs: number): void {
  const isOpen = spans.some((one) => one.provider === provider && one.toMs === Infinity)
  if (!isOpen) spans.push({ provider, fromMs: atMs, toMs: Infinity })
}

function end(spans: readonly Span[], atMs: number, provider: string | null = null): void {
  for (const one of spans)
    if (one.toMs === Infinity && (provider === null || one.provider === provider)) one.toMs = atMs
}
