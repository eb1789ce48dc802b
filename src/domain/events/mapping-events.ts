// mapping-events.ts: the events of the mapping as a whole: reload and models.

import { formatDuration, plural } from '../../std/quantity.ts'
import { quote } from '../../std/quote.ts'
import { count, device, event, field, source, tookMs } from './events.ts'

export const mappingEvents = {
  mapping_reloaded: event({
    fields: { cause: field<string>('what caused the reload'), sources: count('sources'), tookMs },
    meaning: 'A changed config or device table is in force.',
    level: 'info',
    text: ({ cause, sources, tookMs }) =>
      `A new mapping of ${plural(sources, 'source')} is in force after ${formatDuration(tookMs)} (${cause}).`,
  }),
  odometer_reset: event({
    fields: {
      source,
      device,
      asset: field<string>('asset of the device'),
      signal: field<string>('type of the signal, and its part'),
      before: field<number>('last plausible reading, in the unit that is sent'),
      after: field<number>('reading that counts from now on'),
      withheld: count('readings that were not sent'),
      why: field<'agreed' | 'limit'>(
        'the readings agree with each other, or as many as allowed were withheld',
      ),
    },
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
  }),
}
