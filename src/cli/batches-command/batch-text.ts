// batch-text.ts: a held reason in words: what it means, and which command helps.

import { heldReasons, type HeldReason } from '../../domain/held.ts'

const acts: Record<HeldReason, string> = {
  repeated: 'Ask the service whether it processed the batch: then mark-delivered, else reissue.',
  refused_repeat: 'Ask the service whether it processed the batch: then mark-delivered, else split.',
  forbidden: 'Give the requestId to the operator of the firewall; split separates the payloads.',
  stuck: 'The gateway retries. Give the batchId to the support of the service.',
  unlisted: 'Give the requestId to the support of the service.',
  not_accepted: 'The gateway retries when the service accepts something.',
  incomplete_answer: 'Raise delivery.max_response_bytes, then retry.',
  dead_letters_full: 'Requeue or purge dead letters; then the batch continues.',
}

export function reasonText(reason: HeldReason): string {
  return `${reason}: ${heldReasons[reason]}. ${acts[reason]}`
}
