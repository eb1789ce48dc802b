// path-text.ts: the steps of a path as they are written in the config.

import type { Step } from './path-eval.ts'

/** `start`: what the path begins with, such as `$up`; '' for a path of the record. */
export function stepsText(start: string, steps: readonly Step[]): string {
  let text = start
  for (const step of steps) {
    if (step.kind === 'element') text += `[${step.index}]`
    else if (step.kind === 'select') text += `[${step.key}=${step.value}]`
    else {
      const plain = step.kind === 'key' ? keyText(step.key) : functionText(step)
      text += text === '' ? plain : `.${plain}`
    }
  }
  return text
}

function functionText(step: Exclude<Step, { kind: 'key' | 'element' | 'select' }>): string {
  return step.kind === 'split' ? `$split(${JSON.stringify(step.separator)})` : `$${step.kind}()`
}

function keyText(key: string): string {
  const isPlain = /^\$?[A-Za-z_][\w-]*$/.test(key) && key !== '$up' && key !== '$previous'
  return isPlain ? key : JSON.stringify(key)
}
