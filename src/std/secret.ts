// secret.ts: a value that nothing prints by accident. Owner of invariant 11.
//
// Conversion to text (a template, JSON, a log line, util.inspect in a stack trace) gives `***`. Only reveal()
// gives the value; it is called only where the value is used.

import { inspect } from 'node:util'

export class Secret {
  readonly #value: string

  constructor(value: string) {
    this.#value = value
  }

  /** The value itself. Call it only where the secret is used. */
  reveal(): string {
    return this.#value
  }

  toString(): string {
    return '***'
  }

  toJSON(): string {
    return '***'
  }

  [inspect.custom](): string {
    return '***'
  }
}
