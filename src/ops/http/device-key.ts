// device-key.ts: the key of a device that a person names by its asset, its client id or its user.

import type { StageViews } from '../types.ts'

/** A name that no device has is left as it is. */
export function deviceKeyOf({ mapping }: Pick<StageViews, 'mapping'>, name: string): string {
  const found = mapping?.device(name) ?? null
  return found?.kind === 'device' ? found.device : name
}
