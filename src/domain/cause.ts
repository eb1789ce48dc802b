// cause.ts: why a condition is open, in words: what an event or a state says of it; and how bad it is.

export const severities = ['info', 'warning', 'error', 'critical'] as const
export type Severity = (typeof severities)[number]

/** Higher is worse. */
export function rankOf({ severity }: { severity: Severity }): number {
  return severities.indexOf(severity)
}

/** The texts of a condition. Those that a cause omits come from the catalogue. */
export type Cause = {
  key?: string | null
  /** A function gets how often it happened since the condition is open. */
  what?: string | ((count: number) => string)
  why: string
  act?: string
  /** How many more times it happened; 1 without it. */
  times?: number
  /** All things that have the problem now. `cause`: one more of them. */
  causes?: readonly string[]
  cause?: string
  /** How many there are now, for a condition about things that are still there. It replaces `times`. */
  present?: number
  /** In place of those of the catalogue. */
  severity?: Severity
  stops?: null
  /** Characters of `why` that are kept. */
  whyLengthMax?: number
}
