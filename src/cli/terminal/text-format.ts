// text-format.ts: small texts that several commands print.

import { Help } from 'commander'
import { plural } from '../../std/quantity.ts'

export type MapResultSummary = {
  /** `kind` of a MapResult. */
  kind: string
  payloads?: readonly unknown[]
  reason?: string
  detail?: string
  /** Records of the message that are kept, while the others became that. */
  rest?: readonly { kind: string; reason: string; detail: string }[] | undefined
}

/** The result of mapping a message, in a few words. */
export function mapResultText({ rest = [], ...main }: MapResultSummary): string {
  return [main, ...rest].map(singleResultText).join('; ')
}

function singleResultText({ kind, payloads = [], reason = '', detail = '' }: MapResultSummary): string {
  switch (kind) {
    case 'payloads':
      return plural(payloads.length, 'payload')
    case 'ignored':
      return `ignored: ${reason}`
    case 'part':
      return 'waits for other messages of the same payload'
    case 'quarantined':
      return `quarantined, ${withDetail(reason, detail)}`
    default:
      return `dead letter, ${withDetail(reason, detail)}`
  }
}

function withDetail(reason: string, detail: string): string {
  return detail === '' ? reason : `${reason}: ${detail}`
}

const helpColumns = 80

/** Paragraphs under the options of a help text. */
export function notes(...paragraphs: readonly string[]): string {
  return `\n${new Help().boxWrap(paragraphs.join('\n'), helpColumns)}`
}

/** For a command with subcommands that lists without one: its help has no options of the list. */
export function listsByDefault(command: string): string {
  return notes(`Without a subcommand, it lists: \`${command} list --help\` prints the options.`)
}
