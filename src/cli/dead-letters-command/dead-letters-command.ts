// dead-letters-command.ts: `dead-letters`: the operations on dead letters. Those that only read also find
// them in the spool of a daemon that does not run; `export`, and what `edit` and an import read, have files
// of their own.

import { isoTimes } from '../../std/iso-times.ts'
import { listDeadLetters, noSuchDeadLetter } from '../../dead-letters/dead-letters.ts'
import { deadLetterQueryOf } from '../../ops/ops.ts'
import { readSpool } from '../daemon-client/spool-access.ts'
import { groupCommand } from '../operation-command.ts'
import { editInstead, withEditOptions } from './dead-letters-edit-command.ts'
import { exportCommand } from './dead-letters-export-command.ts'
import { importInstead, withImportOptions } from './import-file.ts'

type Values = Parameters<typeof deadLetterQueryOf>[0] & { limit: number }

export const deadLettersCommand = groupCommand(
  'dead-letters',
  { export: exportCommand },
  {
    list: {
      atRest: (path, values, io) =>
        readSpool(path, io, async (spool) => {
          const { limit, ...selection } = values as Values
          const list = await listDeadLetters(spool, deadLetterQueryOf(selection), limit)
          return isoTimes({ now: Date.now(), ...list })
        }),
    },
    show: {
      atRest: (path, values, io) =>
        readSpool(path, io, async (spool) => {
          const { id } = values as { id: string }
          const entry = await spool.deadLetter(id)
          if (entry === null) throw noSuchDeadLetter(id)
          return isoTimes(entry)
        }),
    },
    edit: { extend: withEditOptions, instead: editInstead },
    requeue: { extend: withImportOptions, instead: importInstead },
  },
)
