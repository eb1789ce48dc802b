// password-input.ts: reads a password: from a terminal without showing it, else the first line of stdin.

import { isUtf8 } from 'node:buffer'
import type { Readable } from 'node:stream'
import { GatewayError } from '../../std/gateway-error.ts'
import type { CommandIo } from './terminal.ts'

type Terminal = Readable & { isTTY?: boolean; setRawMode?: (raw: boolean) => void }

const lengthMax = 1024

/** At a terminal, `twice` asks again and compares. Rejects with USAGE. */
export async function readPassword(io: CommandIo, prompt: string, twice: boolean): Promise<string> {
  const stdin = io.stdin as Terminal
  if (stdin.isTTY !== true) return checked(await firstLine(stdin))
  const password = checked(await typed(io, stdin, `${prompt}: `))
  if (twice && (await typed(io, stdin, `${prompt}, again: `)) !== password)
    throw usage('The two passwords differ.', 'Run the command again.')
  return password
}

async function firstLine(stdin: Readable): Promise<string> {
  let bytes = Buffer.alloc(0)
  for await (const chunk of stdin) {
    bytes = Buffer.concat([bytes, Buffer.from(chunk as Buffer | string)])
    if (bytes.includes('\n') || bytes.length > lengthMax + 2) break
  }
  const end = bytes.indexOf('\n')
  const line = end < 0 ? bytes : bytes.subarray(0, end)
  if (!isUtf8(line) && line.length <= lengthMax + 1)
    throw usage('The password is not UTF-8.', 'Give it as UTF-8.')
  return line.toString().replace(/\r$/, '')
}

/** Raw mode, because the terminal shows what is typed otherwise. */
async function typed({ stderr, stop }: CommandIo, stdin: Terminal, prompt: string): Promise<string> {
  stderr.write(prompt)
  stdin.setRawMode?.(true)
  try {
    return await new Promise((resolve, reject) => {
      let text = ''
      const end = (settle: () => void) => {
        stdin.off('data', onData)
        stop.removeEventListener('abort', onStop)
        stdin.pause()
        settle()
      }
      const stopped = () => reject(usage('No password was given.', 'Run the command again.'))
      const onStop = () => end(stopped)
      const onData = (chunk: Buffer | string) => {
        for (const key of String(chunk)) {
          if (key === '\r' || key === '\n') return end(() => resolve(text))
          // Ctrl-C and Ctrl-D: raw mode makes no signal of them.
          if (key === '\u0003' || key === '\u0004') return end(stopped)
          text = key === '\u007f' || key === '\b' ? text.replace(/.$/u, '') : text + key
        }
      }
      stop.addEventListener('abort', onStop, { once: true })
      stdin.on('data', onData)
      stdin.resume()
    })
  } finally {
    stdin.setRawMode?.(false)
    stderr.write('\n')
  }
}

function checked(password: string): string {
  if (password === '') throw usage('The password is empty.', 'Give it as the first line of stdin.')
  if (Buffer.byteLength(password) > lengthMax)
    throw usage(`The password has more than ${lengthMax} bytes.`, 'Choose a shorter one.')
  if (password.includes('\0'))
    throw usage('The password contains a null character.', 'Give it as text, without null characters.')
  return password
}

function usage(why: string, act: string): GatewayError {
  return new GatewayError('USAGE', { what: 'There is no password.', why, act })
}
