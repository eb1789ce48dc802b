// body-config.ts: the options of a source for the bytes of its messages.

import { z } from 'zod'
import { size } from '../../std/schema.ts'
import { compressions } from '../body/body.ts'
import { usualLimits } from '../body/body-limits.ts'
import { encodingNames, encodingsDescription } from '../encodings/encodings.ts'
import { charsets } from '../body/text-charset.ts'

export const bodyFields = {
  encoding: z.enum(encodingNames).default('json').describe(`Format of the message. ${encodingsDescription}`),
  compression: z
    .enum(compressions)
    .optional()
    .describe(
      'How the message is compressed, whatever its encoding is: `deflate` is zlib without its header. With gzip ' +
        'and zlib a message that is not compressed is read too. Payloads of Sparkplug and Kura say it themselves.',
    ),
  charset: z
    .enum(charsets)
    .optional()
    .describe(
      'Charset of a text, such as JSON or CSV. Default: UTF-8, and UTF-16 where a byte order mark says so. `latin1` ' +
        'has the signs of windows-1252 too. Without it, a byte that is not UTF-8 makes the message a dead letter ' +
        '(NOT_UTF8) only where it is in a value that the source reads.',
    ),
  max_unpacked_bytes: size({ minBytes: 1024, maxBytes: 64 * 1024 ** 2 })
    .prefault(`${usualLimits.unpackedBytesMax / 1024}KiB`)
    .describe(
      'Size of a message after it was unpacked, also of one of Sparkplug or Kura. A larger one becomes a dead letter ' +
        '(TOO_LARGE). A few bytes can unpack to a thousand times as many, which hold up all other messages while ' +
        'they are read.',
    ),
}
