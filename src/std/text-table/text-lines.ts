// text-lines.ts: small texts that answers to people are made of.

import { formatAgo } from '../quantity.ts'
import { visible } from '../quote.ts'

/** Lines of foreign text, with unprintable characters escaped. */
export function textOfLines(lines: readonly string[]): string {
  return `${lines.map(visible).join('\n')}\n`
}

/** `3 s ago`. `at`: ISO 8601. */
export function agoSince(at: string, now: number): string {
  return formatAgo(now - Date.parse(at))
}

/** One indented line for each key, such as a reason with its count. */
export function countLines(
  counts: Readonly<Record<string, number>>,
  textOf: (count: number, key: string) => string,
): string[] {
  return Object.entries(counts).map(([key, count]) => `  ${textOf(count, key)}`)
}
