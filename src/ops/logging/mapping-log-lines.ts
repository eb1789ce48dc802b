// mapping-log-lines.ts: the log lines of what concerns the mapping as a whole. See event-log-lines.ts.

import { assertNever } from '../../std/assert.ts'
import { formatDuration } from '../../std/quantity.ts'
import { bounded, quote } from '../../std/quote.ts'
import type { GatewayEvent } from '../../domain/event.ts'
import { clockText, problemsLengthMax } from '../conditions/mapping-conditions.ts'
import { faultLine, line, type Line } from './log-line.ts'

type MappingEvent = Extract<
  GatewayEvent,
  {
    kind:
      | `mapping_${string}`
      | `clock_${string}`
      | `expressions_${string}`
      | 'restart_needed'
      | 'model_unknown'
      | `quarantine_${string}`
  }
>

export function mappingLine(event: MappingEvent): Line {
  switch (event.kind) {
    case 'mapping_reloaded':
      return line(
        'info',
        event,
        `A new mapping of ${event.sources} sources is in force (${event.cause}), ready in ${formatDuration(event.tookMs)}.`,
      )
    case 'mapping_refused': {
      const text = `${event.fault.what} The mapping of before goes on (${event.cause}).`
      return faultLine('error', event.fault, text, { cause: event.cause }, problemsLengthMax)
    }
    case 'restart_needed':
      return event.sections.length === 0
        ? line('info', event, 'The config is as it was at the start again; no restart is needed.')
        : line(
            'warn',
            event,
            `The config changed in ${event.sections.join(', ')}: that is in force after a restart, the mapping at once.`,
          )
    case 'model_unknown':
      return event.devices === 0
        ? line(
            'info',
            event,
            `Source ${quote(event.source, 64)} has no devices without a known model any more.`,
          )
        : line(
            'warn',
            event,
            `${event.devices} devices of source ${quote(event.source, 64)} have no known model: ${bounded(event.what)} left out.`,
            `model|${event.source}`,
          )
    case 'clock_suspect':
      return line('error', event, clockText(event), 'clock')
    case 'clock_trusted':
      return line('info', event, 'The devices no longer disagree with our clock as one.', 'clock')
    case 'expressions_failed':
      return line(
        'error',
        { ...event, why: bounded(event.why) },
        'JSONata expressions cannot be evaluated.',
        'expressions',
      )
    case 'expressions_resumed':
      return line('info', event, 'JSONata expressions are evaluated again.', 'expressions')
    case 'quarantine_released':
      return line(
        'info',
        event,
        `${event.messages} messages of ${event.devices} devices left the quarantine as ${event.payloads} payloads; ` +
          `${event.dead} became dead letters.`,
      )
    case 'quarantine_decided':
      return judgedLine(event)
    default:
      return assertNever(event)
  }
}

function judgedLine(event: Extract<MappingEvent, { kind: 'quarantine_decided' }>): Line {
  const { decision, device, messages, payloads, dead } = event
  const whose = device === null ? '' : ` of device ${quote(device, 80)}`
  if (decision === 'drop')
    return line(
      'warn',
      event,
      `A person dropped ${messages} messages${whose} from the quarantine; they are dead letters now.`,
    )
  const how = decision === 'restamp' ? ', what was wrong with their time being that of their arrival now' : ''
  return line(
    'info',
    event,
    `A person released ${messages} messages${whose} from the quarantine${how}: ${payloads} payloads, ${dead} dead letters.`,
  )
}
