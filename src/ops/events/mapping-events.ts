// mapping-events.ts: the events of the mapping as a whole: reload and models.

import { isoTime } from '../../std/clock.ts'
import { formatDuration, plural } from '../../std/quantity.ts'
import { quote } from '../../std/quote.ts'
import type { EventName, EventOf } from '../../domain/event.ts'
import { noKey } from './event-text.ts'
import type { EventTable } from './types.ts'

type MappingEvent = Extract<
  EventName,
  `mapping_${string}` | 'restart_needed' | 'odometer_reset' | 'field_lost' | 'field_found'
>

/** Some fifty problems of a config or a device table, each with its place. */
const problemsLengthMax = 6000

const optionsShownMax = 12

function listOf(options: readonly string[]): string {
  const more = options.length - optionsShownMax
  return `${options.slice(0, optionsShownMax).join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}

export const mappingEvents: EventTable<MappingEvent> = {
  mapping_reloaded: {
    meaning: 'A changed config or device table is in force.',
    level: 'info',
    text: ({ cause, sources, tookMs }) =>
      `A new mapping of ${plural(sources, 'source')} is in force after ${formatDuration(tookMs)} (${cause}).`,
    clears: { MAPPING_STALE: noKey },
  },
  mapping_refused: {
    level: 'error',
    repeats: ({ fault }) => fault.code,
    whyLengthMax: problemsLengthMax,
    raises: {
      MAPPING_STALE: ({ fault: { what, why, act } }) => ({
        what: `${what} The previous mapping stays in force.`,
        why,
        act: `${act} The gateway reads the files again as soon as they change.`,
        whyLengthMax: problemsLengthMax,
      }),
    },
  },
  restart_needed: {
    meaning: 'The config changed in options that need a restart, or these changes were reverted.',
    act: 'Restart the gateway to apply the changes. No data is lost.',
    level: { oneOf: ['info', 'warn'], of: ({ options }) => (options.length === 0 ? 'info' : 'warn') },
    text: ({ options }) =>
      options.length === 0
        ? 'The whole config is in force again. No restart is needed.'
        : `The config changed in ${listOf(options)}. Restart the gateway to apply it. ` +
          'All other changes are in force.',
    clears: { RESTART_NEEDED: ({ options }) => (options.length === 0 ? null : undefined) },
    raises: {
      RESTART_NEEDED: ({ options }) =>
        options.length === 0
          ? null
          : {
              what: `The config changed in ${listOf(options)}. The old settings are in force there.`,
              why:
                'These options take effect at the start only. All other changes are in force. Where an address changed ' +
                'to which secrets belong, its section waits as a whole.',
              present: 1,
            },
    },
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
