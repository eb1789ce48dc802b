// result-text.ts: what became of a message, in a few words for a person.

export type MapResultSummary = {
  /** `kind` of a MapResult. */
  kind: string
  payloads?: readonly unknown[]
  reason?: string
  detail?: string
}

export function mapResultText({ kind, payloads = [], reason = '', detail = '' }: MapResultSummary): string {
  switch (kind) {
    case 'payloads':
      return countOf(payloads.length, 'payload')
    case 'ignored':
      return `ignored: ${reason}`
    case 'part':
      return 'waits for others to become a payload'
    case 'deferred':
      return 'waits for its expression'
    case 'quarantined':
      return `kept aside as ${reason}: ${detail}`
    default:
      return `dead letter ${reason}: ${detail}`
  }
}

/** `1 payload`, `2 payloads`. */
export function countOf(count: number, noun: string): string {
  return `${count.toLocaleString('en')} ${noun}${count === 1 ? '' : 's'}`
}
