// What Android's C library declares in another way than musl, of the calls that Sources use: Android's headers are not
// to be had where the check runs, so it reads musl's and then these. Only `.ci/check-apple` reads them.
//
// Which pointers may be null is as in release 27 of the NDK; release 28 lets a thread's function return null as well.
// https://android.googlesource.com/platform/bionic/+/refs/heads/main/libc/include

// <dlfcn.h>
void *_Nullable dlopen(const char *_Nullable path, int flags);
void *_Nullable dlsym(void *_Null_unspecified handle, const char *_Nullable name);
char *_Nullable dlerror(void);

// <string.h>, <stdlib.h>
void *_Nonnull memcpy(void *_Nonnull to, const void *_Nonnull from, size_t size);
void *_Nonnull memmove(void *_Nonnull to, const void *_Nonnull from, size_t size);
int memcmp(const void *_Nonnull one, const void *_Nonnull other, size_t size);
void *_Nullable memchr(const void *_Nonnull bytes, int byte, size_t size);
size_t strlen(const char *_Nonnull text);
char *_Nonnull strerror(int code);
char *_Nullable getenv(const char *_Nonnull name);

// <pthread.h>
int pthread_attr_destroy(pthread_attr_t *_Nonnull attributes);
int pthread_attr_init(pthread_attr_t *_Nonnull attributes);
int pthread_attr_setdetachstate(pthread_attr_t *_Nonnull attributes, int state);
int pthread_attr_setstacksize(pthread_attr_t *_Nonnull attributes, size_t size);
int pthread_cond_destroy(pthread_cond_t *_Nonnull condition);
int pthread_cond_init(pthread_cond_t *_Nonnull condition, const pthread_condattr_t *_Nullable attributes);
int pthread_cond_signal(pthread_cond_t *_Nonnull condition);
int pthread_cond_wait(pthread_cond_t *_Nonnull condition, pthread_mutex_t *_Nonnull mutex);
int pthread_create(pthread_t *_Nonnull thread, const pthread_attr_t *_Nullable attributes,
                   void *_Nonnull (*_Nonnull body)(void *_Nonnull), void *_Nullable argument);
int pthread_mutex_destroy(pthread_mutex_t *_Nonnull mutex);
int pthread_mutex_init(pthread_mutex_t *_Nonnull mutex, const pthread_mutexattr_t *_Nullable attributes);
int pthread_mutex_lock(pthread_mutex_t *_Nonnull mutex);
int pthread_mutex_trylock(pthread_mutex_t *_Nonnull mutex);
int pthread_mutex_unlock(pthread_mutex_t *_Nonnull mutex);
int pthread_setname_np(pthread_t thread, const char *_Nonnull name);

// <sys/socket.h>, <netdb.h>, <arpa/inet.h>, <poll.h>, <sys/epoll.h>
int accept(int descriptor, struct sockaddr *_Nullable address, socklen_t *_Nullable size);
int accept4(int descriptor, struct sockaddr *_Nullable address, socklen_t *_Nullable size, int flags);
int bind(int descriptor, const struct sockaddr *_Nonnull address, socklen_t size);
int connect(int descriptor, const struct sockaddr *_Nonnull address, socklen_t size);
int getsockname(int descriptor, struct sockaddr *_Nonnull address, socklen_t *_Nonnull size);
int getpeername(int descriptor, struct sockaddr *_Nonnull address, socklen_t *_Nonnull size);
int getsockopt(int descriptor, int level, int name, void *_Nullable value, socklen_t *_Nonnull size);
int setsockopt(int descriptor, int level, int name, const void *_Nullable value, socklen_t size);
ssize_t recv(int descriptor, void *_Nullable buffer, size_t size, int flags);
ssize_t send(int descriptor, const void *_Nonnull buffer, size_t size, int flags);
int getaddrinfo(const char *_Nullable host, const char *_Nullable service, const struct addrinfo *_Nullable hints,
                struct addrinfo *_Nullable *_Nonnull result);
void freeaddrinfo(struct addrinfo *_Nullable list);
const char *_Nonnull gai_strerror(int code);
const char *_Nullable inet_ntop(int family, const void *_Nonnull from, char *_Nonnull to, socklen_t size);
int inet_pton(int family, const char *_Nonnull from, void *_Nonnull to);
int poll(struct pollfd *_Nullable entries, nfds_t count, int milliseconds);
int epoll_ctl(int epoll, int operation, int descriptor, struct epoll_event *_Null_unspecified event);
int epoll_wait(int epoll, struct epoll_event *_Nonnull events, int count, int milliseconds);

// <unistd.h>, <fcntl.h>, <sys/stat.h>, <stdio.h>
int pipe(int descriptors[_Nonnull 2]);
int unlink(const char *_Nonnull path);
int mkdir(const char *_Nonnull path, mode_t mode);
int stat(const char *_Nonnull path, struct stat *_Nonnull buffer);
int lstat(const char *_Nonnull path, struct stat *_Nonnull buffer);
int rename(const char *_Nonnull from, const char *_Nonnull to);
FILE *_Nullable fopen(const char *_Nonnull path, const char *_Nonnull mode);
size_t fread(void *_Nonnull buffer, size_t size, size_t count, FILE *_Nonnull file);
int ferror(FILE *_Nonnull file);
int fclose(FILE *_Nonnull file);
