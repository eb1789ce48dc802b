// More seeds and messages are in fuzz.slow.test.ts.

import { testBrokenMessages, testComputedValues } from './fuzz-tests.ts'

testBrokenMessages([1, 2], 4000)
testComputedValues([1], 2000)
