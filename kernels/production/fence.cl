// memory fence: other work-groups see what this work-item stored before it no later than what it stores after it;
// OpenCL 1.2 has no such guarantee between work-groups
#define IN_ORDER() asm volatile("membar.gl;" ::: "memory")
