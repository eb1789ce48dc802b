import { describe, expect, test } from 'vitest'
import { printAnswer } from '../../../src/cli/terminal/terminal.ts'
import { commandIo } from '../../support/cli-world.ts'
import { keptOutput } from '../../support/ops-world.ts'

describe('an answer that is printed', () => {
  test('does not move the cursor or hide text, whatever a device is called', () => {
    const { stream, text } = keptOutput()
    printAnswer(commandIo({ stdout: stream }), {}, 'truck\u001b[2J\u0007\r\u202e7\nnext\n', (name) => name)
    expect(text()).toBe('truck\\u{1b}[2J\\u{7}\\u{d}\\u{202e}7\nnext\n')
  })
})
