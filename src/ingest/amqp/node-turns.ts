// node-turns.ts: which node of the cluster a connection tries, and after what pause: the next one soon, and
// when all have failed, after the back-off.

import type { Clock } from '../../std/clock.ts'
import { createReconnectDelay } from '../message-sources/reconnect-delay.ts'
import type { AmqpFault } from './amqp-faults/amqp-faults.ts'
import type { AmqpNode, AmqpOptions } from './types.ts'

export type NodeTurns = {
  node(): AmqpNode
  /** The connection is open. */
  opened(): void
  /** It ended, and was open for `openMs`; null: never. The pause until the next one, `node`, is tried. */
  failed(fault: Pick<AmqpFault, 'isRefused'>, openMs: number | null): number
  /** All nodes have failed, one after the other. */
  isRoundOver(): boolean
  /** The back-off begins again. */
  reset(): void
}

const nextNodeMs = 100

export function createNodeTurns(
  deps: { clock: Clock; random: () => number },
  options: Pick<AmqpOptions, 'nodes' | 'reconnectFirstMs' | 'reconnectMaxMs'>,
  first = 0,
): NodeTurns {
  const { nodes } = options
  const delay = createReconnectDelay(deps, options)
  let node = first % nodes.length
  let failures = 0
  let isRoundOver = false

  return {
    node() {
      return nodes[node]!
    },
    opened() {
      failures = 0
    },
    failed({ isRefused = false }, openMs) {
      if (openMs !== null) delay.ended(openMs)
      node = (node + 1) % nodes.length
      failures += 1
      isRoundOver = failures >= nodes.length
      if (!isRoundOver) return nextNodeMs
      failures = 0
      return delay.next(isRefused)
    },
    isRoundOver() {
      return isRoundOver
    },
    reset: delay.reset,
  }
}
