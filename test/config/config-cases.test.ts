// What `check` says of configs, and of the files that they name: the cases are in `cases/`.

import { commandCases } from '../support/command-cases.ts'

commandCases(import.meta.dirname)
