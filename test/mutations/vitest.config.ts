import { defineConfig } from 'vitest/config'
import { keepCompiledCode } from '../support/compiled-code.ts'
import { keepFoldersOnDisk } from '../support/temporary-place.ts'
import { SkippedTests } from '../all/skipped-tests.ts'

keepCompiledCode()
keepFoldersOnDisk()

// `npm run test:mutations`: makes mistakes in the daemon that the simulation must notice. Too long for
// `npm run test:system`.
export default defineConfig({
  test: {
    include: ['test/**/*mutations.test.ts'],
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 300_000,
    reporters: ['default', new SkippedTests()],
  },
})
