// learn-files.ts: the proposal of `learn` as files (--to). A file that exists is not replaced.

import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { codeOf, GatewayError, messageOf } from '../../std/gateway-error.ts'

/** Rejects with OUTPUT_UNWRITABLE. */
export async function writeLearned(
  folder: string,
  { yaml, devices, cases }: { yaml: string; devices: string; cases: string },
): Promise<void> {
  const files = { 'sources.yaml': yaml, 'devices.csv': devices, 'learned.cases.yaml': cases }
  try {
    await mkdir(folder, { recursive: true })
    for (const [name, text] of Object.entries(files))
      if (text !== '') await writeFile(join(folder, name), text, { flag: 'wx', mode: 0o600 })
  } catch (error) {
    throw new GatewayError('OUTPUT_UNWRITABLE', {
      what: `Cannot write the proposal into ${folder}.`,
      why: codeOf(error) === 'EEXIST' ? `${messageOf(error)}. Nothing is replaced.` : `${messageOf(error)}.`,
      act: 'Give a directory that does not exist yet, on a disk with space.',
      cause: error,
    })
  }
}
