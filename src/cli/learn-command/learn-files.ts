// learn-files.ts: the proposal of `learn` as files (--to). A file that exists is not replaced.

import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { codeOf, GatewayError, messageOf, whyUnwritable } from '../../std/gateway-error.ts'
import { wholeConfig } from './bridge-draft.ts'

/** Rejects with OUTPUT_UNWRITABLE. */
export async function writeLearned(
  folder: string,
  { yaml, devices, cases }: { yaml: string; devices: string; cases: string },
): Promise<void> {
  const files = {
    'gateway.yaml': yaml === '' ? '' : wholeConfig({ yaml, devices }),
    'devices.csv': devices,
    'learned.cases.yaml': cases,
  }
  try {
    // Only the last part: a path whose parent is missing is misspelt, or its disk is not mounted.
    await mkdir(folder).catch((error: unknown) => {
      if (codeOf(error) !== 'EEXIST') throw error
    })
    for (const [name, text] of Object.entries(files))
      if (text !== '') await writeFile(join(folder, name), text, { flag: 'wx', mode: 0o600 })
  } catch (error) {
    throw new GatewayError('OUTPUT_UNWRITABLE', {
      what: `Cannot write the proposal into ${folder}.`,
      why:
        codeOf(error) === 'EEXIST'
          ? `${messageOf(error)}. Nothing is replaced.`
          : whyUnwritable(folder, error),
      act: 'Give a directory that does not exist yet, on a disk with space.',
      cause: error,
    })
  }
}
