// alert-text.ts: an alert in words: the headline, which is the subject of a mail, and the text.
//
// Texts of conditions may have parts from outside, such as names of devices. Their control characters are
// written out, so that none can end a line or a header.

import { zonedTime } from '../std/clock.ts'
import { formatDuration, plural } from '../std/quantity.ts'
import { visible } from '../std/quote.ts'
import type { Alert, Change, OpenCondition } from './types.ts'

const headlineLengthMax = 140
const shownMax = 20
const causesShown = 50

const words: Record<Change['kind'], string> = {
  raised: 'RAISED',
  worsened: 'WORSE',
  changed: 'ALSO',
  repeated: 'STILL RAISED',
  cleared: 'CLEARED',
}

type Parts = Pick<Alert, 'changes' | 'omitted' | 'open' | 'heldBack' | 'digest'>

/** Without the name of the gateway. */
export function headlineOf({ changes, omitted, heldBack, digest }: Parts): string {
  const [first] = changes
  if (digest !== null) return `Summary of the day: ${plural(digest.length, 'condition')} open`
  if (heldBack !== null)
    return `Limit of alerts reached: ${plural(heldBack.changes, 'change')} ${heldBack.changes === 1 ? 'waits' : 'wait'} until about ${zonedTime(heldBack.untilAt)}: ${visible(heldBack.what)}`
  if (first === undefined) return `Conditions changed and changed back ${timesOf(omitted)}`
  const more = changes.length > 1 ? ` (and ${changes.length - 1} more)` : ''
  const about = `${first.code}${first.key === null ? '' : ` ${first.key}`}`
  const text =
    first.kind === 'cleared'
      ? `${words.cleared} ${about}`
      : `${words[first.kind]} ${first.severity} ${about}: ${first.what}`
  return shortened(visible(text), headlineLengthMax - more.length) + more
}

/** Ends after a whole word, where it is too long. */
function shortened(text: string, lengthMax: number): string {
  if (text.length <= lengthMax) return text
  return `${text.slice(0, lengthMax - 1).replace(/\s+\S*$/, '')}…`
}

/** The whole alert as plain text. `lengthMax`: for receivers that refuse long ones. */
export function textOf(alert: Alert, lengthMax = 60_000): string {
  const { gateway, changes, omitted, open, sentence, version, isTest, page, digest } = alert
  const head = [
    `${visible(gateway)}: ${isTest ? 'TEST. ' : ''}${visible(alert.headline)}`,
    '',
    visible(sentence),
    ...(isTest ? [] : [`${plural(open, 'condition')} open that you get alerts of.`]),
  ]
  const tail = [
    ...(omitted > 0
      ? ['', `Not sent one by one: conditions changed and changed back ${timesOf(omitted)}.`]
      : []),
    '',
    `Look: ${page === null ? '' : `${page} or `}\`telemetry-gateway status\` on ${visible(gateway)}. Version ${version}, alert ${alert.id}.`,
  ]
  const parts: string[] = []
  let length = [...head, ...tail].join('\n').length
  const all = digest?.map((one) => digestText(one, alert.createdAt))
  const texts = all ?? changes.map((change) => changeText(change, alert.createdAt))
  for (const [index, text] of texts.entries()) {
    const part = `\n${text}`
    if (index >= shownMax || length + part.length > lengthMax - 40) {
      const what = digest === null ? 'more change' : 'more condition'
      parts.push(`\n${plural(texts.length - index, what)}: see the status.`)
      break
    }
    length += part.length + 1
    parts.push(part)
  }
  return `${[...head, ...parts, ...tail].join('\n')}\n`
}

/** With all of its causes that fit. */
function digestText({ severity, code, key, since, what, causes }: OpenCondition, now: number): string {
  const shown = causes.slice(0, causesShown).map(visible).join(', ')
  const more = causes.length > causesShown ? `, and ${causes.length - causesShown} more` : ''
  return [
    `${severity} ${code}${key === null ? '' : ` ${visible(key)}`}`,
    `  since ${zonedTime(since)} (${formatDuration(Math.max(0, now - since))})`,
    `  what  ${visible(what)}`,
    ...(causes.length === 0 ? [] : [`  all   ${shown}${more}`]),
  ].join('\n')
}

function timesOf(count: number): string {
  return count === 1 ? 'once' : `${count} times`
}

function changeText(change: Change, now: number): string {
  const { kind, code, key, severity, since, clearedAt, what, why, act } = change
  const about = `${words[kind]} ${severity} ${code}${key === null ? '' : ` ${visible(key)}`}`
  const lasted = formatDuration(Math.max(0, (clearedAt ?? now) - since))
  if (kind === 'cleared')
    return `${about}\n  since ${zonedTime(since)}, for ${lasted}\n  was   ${visible(what)}`
  return [
    about,
    `  since ${zonedTime(since)} (${lasted})`,
    `  what  ${visible(what)}`,
    `  why   ${visible(why)}`,
    `  act   ${visible(act)}`,
  ].join('\n')
}
