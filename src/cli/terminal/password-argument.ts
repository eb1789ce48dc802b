// password-argument.ts: a password in a file that an option names. Other users of the machine can read the
// arguments of a command.

import { readUtf8 } from '../../std/file-system/utf8-text.ts'
import { unreadable } from '../../std/gateway-error.ts'

/** Without the line feed at its end. */
export async function readPasswordFile(path: string): Promise<string> {
  try {
    return (await readUtf8(path)).replace(/\r?\n$/, '')
  } catch (error) {
    throw unreadable(
      `the password file ${path}`,
      error,
      'Give a file that contains the password and that you may read.',
    )
  }
}
