// portion.ts: follows what was read of one connection in one turn, within the budgets of the turn.

import type { TurnBudget, Turns } from '../turns.ts'
import type { Allowance, Framing } from './packet-framing.ts'

/** Of the portion that is being followed. */
const allowance: Allowance = { messages: 0, packets: 0, control: 0 }

/** Returns how many of `bytes` may pass, with at most `messages` messages; -1 after a violation. */
export function followInTurn(
  bytes: Buffer,
  messages: number,
  framing: Framing,
  budget: TurnBudget,
  turns: Pick<Turns, 'refill' | 'controlLeft' | 'spendControl'>,
): number {
  turns.refill(budget)
  allowance.messages = messages
  allowance.packets = budget.packets
  const control = Math.min(budget.control, turns.controlLeft())
  allowance.control = control
  const end = framing.follow(bytes, allowance)
  budget.packets = allowance.packets
  budget.control -= control - allowance.control
  turns.spendControl(control - allowance.control)
  return end
}
