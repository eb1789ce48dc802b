// silence-config.ts: `ops.silence` of the config: when the gateway says that no device sends.

import { z } from 'zod'
import { duration } from '../std/schema.ts'

const weekdays = ['sunday', 'monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday'] as const

/** Minutes of the local day, from `from` until `until`; over midnight where `until` is smaller. */
export type QuietHours = { from: number; until: number }

export const silenceSchema = z
  .strictObject({
    after: z
      .union([z.literal(['auto', 'off']), duration({ minMs: 30_000, maxMs: 365 * 86_400_000 })])
      .default('auto')
      .describe(
        'When no device of the whole gateway has sent for this long, the condition DEVICES_SILENT opens. `auto` ' +
          'learns it: ten times the usual gap between messages, or the longest pause of this weekday in the last ' +
          '14 days if that is longer; in the first three days ten times the usual gap, at least 30 s.',
      ),
    device_after: z
      .union([z.literal(['auto', 'off']), duration({ minMs: 30_000, maxMs: 365 * 86_400_000 })])
      .default('auto')
      .describe(
        'When a single device is silent for this long while others send, the condition DEVICE_SILENT opens. `auto`: ' +
          'the larger of 24 h and three times its longest pause of the last 15 days; not for a device that is known for ' +
          'less than 14 days.',
      ),
    quiet_hours: z
      .string()
      .meta({ format: 'HH:MM-HH:MM', examples: ['22:00-06:00'] })
      .transform((text, context): QuietHours | null => {
        if (text === '') return null
        const match = /^([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)$/.exec(text)
        if (match !== null) {
          const [, fromHour, fromMinute, untilHour, untilMinute] = match.map(Number)
          return { from: fromHour! * 60 + fromMinute!, until: untilHour! * 60 + untilMinute! }
        }
        context.addIssue({
          code: 'custom',
          message: `must be two times such as 22:00-06:00, or empty, found "${text}"`,
        })
        return z.NEVER
      })
      .prefault('22:00-06:00')
      .describe(
        'Local time of the machine. In these hours DEVICES_SILENT has severity `info` and does not change the ' +
          'verdict. Empty: no hours.',
      ),
    quiet_days: z
      .array(z.enum(weekdays))
      .default(['saturday', 'sunday'])
      .describe('The same for whole days.'),
  })
  .prefault({})
  .describe('When the gateway says that no device sends.')

export type SilenceConfig = z.output<typeof silenceSchema>

/** Whether silence is expected at this time. */
export function isQuietAt({ quiet_hours: hours, quiet_days: days }: SilenceConfig, at: Date): boolean {
  if (days.includes(weekdays[at.getDay()]!)) return true
  if (hours === null) return false
  const minute = at.getHours() * 60 + at.getMinutes()
  return hours.from <= hours.until
    ? minute >= hours.from && minute < hours.until
    : minute >= hours.from || minute < hours.until
}
