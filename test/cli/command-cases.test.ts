// Commands whose words, input and output are data: the cases are beside the tests of each command.

import { commandCases } from '../support/command-cases.ts'

commandCases(import.meta.dirname)
