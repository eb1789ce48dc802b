// mapping-conditions.ts: the conditions of the mapping as a whole. See condition-rules.ts.

import { assertNever } from '../../std/assert.ts'
import { formatDuration } from '../../std/quantity.ts'
import { quote } from '../../std/quote.ts'
import type { GatewayEvent } from '../../domain/event.ts'
import type { Conditions } from './conditions.ts'

type MappingEvent = Extract<
  GatewayEvent,
  { kind: `mapping_${string}` | `clock_${string}` | `expressions_${string}` | 'model_unknown' }
>

/** Some fifty problems of a config or a device table, each with its place. */
export const problemsLengthMax = 6000

export function applyMapping(conditions: Conditions, event: MappingEvent): void {
  switch (event.kind) {
    case 'mapping_reloaded':
      conditions.clear('MAPPING_STALE')
      return
    case 'mapping_refused': {
      const { what, why, act } = event.fault
      conditions.raise({
        code: 'MAPPING_STALE',
        severity: 'error',
        what: `${what} The mapping of before goes on.`,
        why,
        act: `${act} The files are read again as soon as they change.`,
        whyLengthMax: problemsLengthMax,
      })
      return
    }
    case 'model_unknown':
      if (event.devices === 0) conditions.clear('MODEL_UNKNOWN', event.source)
      else
        conditions.raise({
          code: 'MODEL_UNKNOWN',
          key: event.source,
          severity: 'warning',
          ...modelText(event),
        })
      return
    case 'clock_suspect':
      conditions.raise({
        code: 'OUR_CLOCK_SUSPECT',
        severity: 'error',
        what: clockText(event),
        why:
          'Clocks of devices differ from each other; the one thing that they share is ours.' +
          (event.skewMs > 0 ? ' Or all of them deliver what they had stored.' : ''),
        act: 'Check the clock of this machine (`timedatectl`). If it is right, see what the devices have in common.',
      })
      return
    case 'clock_trusted':
      conditions.clear('OUR_CLOCK_SUSPECT')
      return
    case 'expressions_failed':
      conditions.raise({
        code: 'EXPRESSIONS_STALLED',
        severity: 'error',
        what: 'JSONata expressions cannot be evaluated; their messages wait on the disk, acknowledged.',
        why: `The thread that evaluates them cannot be started: ${event.why}.`,
        act: 'Check the memory of the machine. It is tried again by itself.',
      })
      return
    case 'expressions_resumed':
      conditions.clear('EXPRESSIONS_STALLED')
      return
    default:
      assertNever(event)
  }
}

function modelText({ source, devices, what }: Extract<GatewayEvent, { kind: 'model_unknown' }>) {
  return {
    what: `${devices} devices of source ${quote(source, 64)} have no known model: ${what} left out of their payloads.`,
    why: 'What an id of theirs means depends on the model, and neither the device table nor the source names one.',
    act: 'Fill in the column `model` of the device table, or set `model` of the source where all are alike.',
  }
}

/** The sentence about our clock. */
export function clockText({
  skewMs,
  devices,
  judged,
}: Extract<GatewayEvent, { kind: 'clock_suspect' }>): string {
  const direction = skewMs > 0 ? 'ahead' : 'behind'
  return (
    `OUR clock is probably wrong: ${devices} of ${judged} devices agree that it is ` +
    `${formatDuration(Math.abs(skewMs))} ${direction}.`
  )
}
