// mapping-events.ts: the events of the mapping as a whole: reload and models.

import { isoTime } from '../../std/clock.ts'
import { formatDuration, plural } from '../../std/quantity.ts'
import { quote } from '../../std/quote.ts'
import type { EventName, EventOf } from '../../domain/event.ts'
import type { EventTable } from './types.ts'

type MappingEvent = Extract<EventName, `mapping_${string}` | 'odometer_reset' | 'field_lost' | 'field_found'>

export const mappingEvents: EventTable<MappingEvent> = {
  mapping_reloaded: {
    meaning: 'A changed config or device table is in force.',
    level: 'info',
    text: ({ cause, sources, tookMs }) =>
      `A new mapping of ${plural(sources, 'source')} is in force after ${formatDuration(tookMs)} (${cause}).`,
  },
  odometer_reset: {
    meaning:
      'An odometer, or the engine hours, jumped or fell and count anew: the unit was replaced, or the tracker ' +
      'is in another vehicle.',
    act:
      'If the tracker was moved, correct the asset of the device in the device table. If the memory is wrong, run ' +
      '`devices forget KEY`. If the readings are ' +
      'wrong, check the tracker and the units of the mapping.',
    level: 'warn',
    text: ({ device, asset, signal, before, after, withheld, why }) =>
      `${signal} of device ${quote(device, 64)} (asset ${quote(asset, 64)}) counts from ${after} on, after ` +
      `${before}. ${plural(withheld, 'reading')} withheld; ` +
      (why === 'agreed' ? 'the last ones agree with each other.' : 'no more are withheld than that.'),
    repeats: ({ source, device, signal }) => `${source}|${device}|${signal}`,
  },
  field_lost: {
    meaning: 'A field that devices of a source had is in their messages no more.',
    act: 'See the condition.',
    level: 'warn',
    text: lostText,
    repeats: lostKey,
    raises: {
      FIELD_LOST: (event) => ({
        key: lostKey(event),
        present: event.devices,
        what: lostText(event),
        why: lostWhy(event),
      }),
    },
  },
  field_found: {
    meaning: 'A field that was lost is there again, is no longer in the mapping, or was missing for a week.',
    level: 'info',
    text: ({ source, field }) =>
      `${capital(fieldText(field))} of source ${quote(source, 64)} count as lost no more.`,
    repeats: lostKey,
    clears: { FIELD_LOST: lostKey },
  },
}

function lostText({ source, field, since, devices, of, isByMapping }: EventOf<'field_lost'>): string {
  const when = isByMapping ? 'since the mapping was changed at' : 'any more, the first of them since'
  return (
    `${devices} of ${plural(of, 'device')} that sent ${fieldText(field)} (source ${quote(source, 64)}) send none ` +
    `${when} ${isoTime(since)}.`
  )
}

function lostKey({ source, field }: { source: string; field: string }): string {
  return `${source}|${field}`
}

function lostWhy({ key, isKeyRead, isByMapping, isKept }: EventOf<'field_lost'>): string {
  const cause = isKeyRead
    ? `The devices write ${quote(key ?? '', 64)} otherwise, probably after an update: the mapping cannot read its value.`
    : isByMapping
      ? 'What the mapping of the source reads now finds nothing, or is not for the models in the device table.'
      : 'The devices name it otherwise, or send it no more, probably after an update.'
  const unread =
    key === null || isKeyRead ? '' : ` Nothing reads ${quote(key, 64)}, which is in their messages.`
  const kept = isKept
    ? ' Messages without it are sent, and kept as dead letters with the reason FIELD_LOST.'
    : ' It cannot be sent later by itself, so nothing is kept.'
  return cause + unread + kept
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

function fieldText(field: string): string {
  if (field === 'position') return 'positions'
  if (field === 'time') return 'their own times'
  return field.startsWith('signal ') ? `the ${field}` : field
}
