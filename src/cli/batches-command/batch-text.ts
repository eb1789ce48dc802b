// batch-text.ts: a held reason in words: what it means, and what a person can do.

import { heldReasons, type HeldReason } from '../../domain/held.ts'
import { heldActs } from '../../ops/ops.ts'

export function reasonText(reason: HeldReason): string {
  return `${reason}: ${heldReasons[reason]}. ${heldActs[reason]}`
}
